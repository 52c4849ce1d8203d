// A cell of 802.11n, ac or ax in ns-3.37 (Debian's 3.37-2): what today's air is held against. Prints one line of JSON.
//
//   ns3_air --cell=upload --n=5                                        saturated uploads, 802.11n HT20 MCS7
//   ns3_air --cell=upload --standard=ac --width=80 --mcs=9 --streams=2 --gi=400 --n=10
//   ns3_air --cell=upload --n=5 --probe=VO                             and an upload of 200 B every 10 ms beside them
//   ns3_air --cell=upload --loss=0.1                                   MPDUs lost at random
//   ns3_air --cell=upload --snr=16 --rate=minstrel                     errors by SNR, rates by Minstrel-HT
//   ns3_air --cell=download --queue=fq_codel --limit=64                one Cubic download and small datagrams beside it
//
// 5 GHz, no beacons and no association (ad hoc MAC), stations at 1 m, TXOP limit 0, no preamble detection model (it hides
// frames that collide), no limit of retries or lifetime, and with --bar=0 the data is repeated after a missed block ack.
// Of uploads IP packets of --bytes are fed into the device so that its queue is never empty; goodput counts UDP payload,
// 28 bytes less than the packet.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/propagation-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <sstream>
#include <vector>

using namespace ns3;

namespace
{

/// Bytes of an IPv4 and a UDP header.
const uint32_t HEADERS = 28;

struct Cell
{
    std::string cell = "upload";
    std::string standard = "n";
    uint32_t width = 20;
    uint32_t mcs = 7;
    uint32_t streams = 1;
    uint32_t gi = 800;
    uint32_t n = 1;
    uint32_t bytes = 1500;
    uint32_t ampdu = 65535;
    uint32_t window = 64;
    uint32_t rts = 65535;
    std::string bulk = "BE";
    std::string probe = "none";
    uint32_t probeBytes = 200;
    double probeEvery = 0.01;
    double loss = 0;
    double snr = std::numeric_limits<double>::quiet_NaN();
    std::string rate = "fixed";
    std::string queue = "fifo";
    uint32_t limit = 500;
    std::string wire = "1Gbps";
    double wireDelay = 0.01;
    bool bar = false;
    double from = 1;
    double stop = 11;
    uint32_t seed = 1;
};

struct Air
{
    NodeContainer nodes; // 0 is the access point
    NetDeviceContainer devices;
};

/// What is seen on the air and at the receivers, from Cell::from on.
struct Seen
{
    struct Sent
    {
        int64_t begin;
        int64_t end;
        bool probe;
    };
    std::map<uint32_t, std::vector<Sent>> sent; // by node; frames that contend: data, RTS
    std::map<std::string, uint64_t> modes;      // MPDUs of bulk data by mode
    std::map<uint32_t, uint64_t> received;      // packets of bulk data by sender
    uint64_t ppdus = 0;
    uint64_t mpdus = 0;
    std::vector<double> delays; // of probes, s
};

Cell g_cell;
Seen g_seen;
std::map<Mac48Address, uint32_t> g_node;
std::map<uint64_t, Time> g_probes; // on their way, by packet

uint8_t
Priority(const std::string& access)
{
    return access == "VO" ? 6 : access == "VI" ? 5 : access == "BK" ? 1 : 0;
}

WifiStandard
Standard(const std::string& name)
{
    return name == "ax" ? WIFI_STANDARD_80211ax : name == "ac" ? WIFI_STANDARD_80211ac : WIFI_STANDARD_80211n;
}

std::string
Mode(const Cell& cell)
{
    std::ostringstream name;
    name << (cell.standard == "ax" ? "HeMcs" : cell.standard == "ac" ? "VhtMcs" : "HtMcs");
    name << (cell.standard == "n" ? cell.mcs + 8 * (cell.streams - 1) : cell.mcs);
    return name.str();
}

void
Defaults(const Cell& cell)
{
    const uint32_t unlimited = 4000000000u;
    const uint32_t packets = cell.cell == "upload" ? 4000 : cell.limit;
    Config::SetDefault("ns3::WifiRemoteStationManager::MaxSsrc", UintegerValue(unlimited));
    Config::SetDefault("ns3::WifiRemoteStationManager::MaxSlrc", UintegerValue(unlimited));
    Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold", UintegerValue(cell.rts));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(1000)));
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, packets)));
    Config::SetDefault("ns3::QosTxop::UseExplicitBarAfterMissedBlockAck", BooleanValue(cell.bar));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpCubic"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(16 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(16 << 20));
}

YansWifiPhyHelper
Radio(const Cell& cell)
{
    YansWifiChannelHelper channel;
    channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    if (std::isnan(cell.snr))
    {
        channel.AddPropagationLoss("ns3::LogDistancePropagationLossModel");
    }
    else
    {
        // The default noise figure, 7 dB, above k x 290 K x width.
        const double noise = 10 * std::log10(1.3803e-23 * 290 * cell.width * 1e6) + 30 + 7;
        channel.AddPropagationLoss("ns3::FixedRssLossModel", "Rss", DoubleValue(noise + cell.snr));
    }
    YansWifiPhyHelper phy;
    phy.SetChannel(channel.Create());
    phy.DisablePreambleDetectionModel();
    const std::map<uint32_t, uint32_t> number{{20, 36}, {40, 38}, {80, 42}, {160, 50}};
    std::ostringstream settings;
    settings << "{" << number.at(cell.width) << ", " << cell.width << ", BAND_5GHZ, 0}";
    phy.Set("ChannelSettings", StringValue(settings.str()));
    phy.Set("Antennas", UintegerValue(cell.streams));
    phy.Set("MaxSupportedTxSpatialStreams", UintegerValue(cell.streams));
    phy.Set("MaxSupportedRxSpatialStreams", UintegerValue(cell.streams));
    return phy;
}

Air
InstallAir(const Cell& cell, uint32_t stations)
{
    Air air;
    air.nodes.Create(stations + 1);
    auto positions = CreateObject<ListPositionAllocator>();
    positions->Add(Vector(0, 0, 0));
    for (uint32_t i = 0; i < stations; i++)
    {
        const double angle = 2 * M_PI * i / stations;
        positions->Add(Vector(std::cos(angle), std::sin(angle), 0));
    }
    MobilityHelper mobility;
    mobility.SetPositionAllocator(positions);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(air.nodes);

    WifiHelper wifi;
    wifi.SetStandard(Standard(cell.standard));
    if (cell.rate == "fixed")
    {
        wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue(Mode(cell)),
                                     "ControlMode", StringValue("OfdmRate24Mbps"));
    }
    else
    {
        wifi.SetRemoteStationManager(cell.rate == "ideal" ? "ns3::IdealWifiManager" : "ns3::MinstrelHtWifiManager");
    }
    wifi.ConfigHtOptions("ShortGuardIntervalSupported", BooleanValue(cell.gi == 400));
    if (cell.standard == "ax")
    {
        wifi.ConfigHeOptions("GuardInterval", TimeValue(NanoSeconds(cell.gi)), "MpduBufferSize",
                             UintegerValue(cell.window));
    }
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac", "QosSupported", BooleanValue(true), "BE_MaxAmpduSize", UintegerValue(cell.ampdu),
                "VI_MaxAmpduSize", UintegerValue(cell.ampdu), "BK_MaxAmpduSize", UintegerValue(cell.ampdu));
    auto phy = Radio(cell);
    air.devices = wifi.Install(phy, mac, air.nodes);
    wifi.AssignStreams(air.devices, 1000);
    for (uint32_t i = 0; i <= stations; i++)
    {
        auto device = DynamicCast<WifiNetDevice>(air.devices.Get(i));
        g_node[device->GetMac()->GetAddress()] = i;
        for (auto access : {AC_BE, AC_BK, AC_VI, AC_VO})
        {
            device->GetMac()->GetQosTxop(access)->SetTxopLimit(Seconds(0));
        }
        if (cell.loss > 0 && (i == 0) == (cell.cell == "upload"))
        {
            auto errors = CreateObject<RateErrorModel>();
            errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
            errors->SetRate(cell.loss);
            errors->AssignStreams(5000 + i);
            device->GetPhy()->SetPostReceptionErrorModel(errors);
        }
    }
    return air;
}

void
OnSent(uint32_t node, WifiConstPsduMap psdus, WifiTxVector vector, double)
{
    const auto psdu = psdus.begin()->second;
    const auto& header = psdu->GetHeader(0);
    if (Simulator::Now() < Seconds(g_cell.from) || !(header.IsQosData() || header.IsRts()))
    {
        return;
    }
    const bool probe = g_cell.probe != "none" && node == g_cell.n + 1;
    const Time begin = Simulator::Now();
    const Time end = begin + WifiPhy::CalculateTxDuration(psdus, vector, WIFI_PHY_BAND_5GHZ);
    // After an RTS the data does not contend.
    if (header.IsRts() || g_cell.rts >= psdu->GetSize())
    {
        g_seen.sent[node].push_back({begin.GetNanoSeconds(), end.GetNanoSeconds(), probe});
    }
    if (header.IsQosData() && !probe)
    {
        g_seen.ppdus++;
        g_seen.mpdus += psdu->GetNMpdus();
        std::ostringstream mode;
        mode << vector.GetMode() << "x" << int(vector.GetNss());
        g_seen.modes[mode.str()] += psdu->GetNMpdus();
    }
}

bool
OnReceived(Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t, const Address& from)
{
    if (Simulator::Now() < Seconds(g_cell.from))
    {
        return true;
    }
    const uint32_t node = g_node.at(Mac48Address::ConvertFrom(from));
    const auto probe = g_probes.find(packet->GetUid());
    if (probe != g_probes.end())
    {
        g_seen.delays.push_back((Simulator::Now() - probe->second).GetSeconds());
        g_probes.erase(probe);
    }
    else
    {
        g_seen.received[node]++;
    }
    return true;
}

void
Feed(Ptr<WifiNetDevice> from, Address to)
{
    const uint8_t priority = Priority(g_cell.bulk);
    auto queue = from->GetMac()->GetQosTxop(QosUtilsMapTidToAc(priority))->GetWifiMacQueue();
    for (uint32_t waiting = queue->GetNPackets(); waiting < 2000; waiting++)
    {
        auto packet = Create<Packet>(g_cell.bytes);
        SocketPriorityTag tag;
        tag.SetPriority(priority);
        packet->AddPacketTag(tag);
        from->Send(packet, to, 0x0800);
    }
    Simulator::Schedule(MilliSeconds(2), &Feed, from, to);
}

void
Probe(Ptr<WifiNetDevice> from, Address to)
{
    auto packet = Create<Packet>(g_cell.probeBytes);
    SocketPriorityTag tag;
    tag.SetPriority(Priority(g_cell.probe));
    packet->AddPacketTag(tag);
    g_probes[packet->GetUid()] = Simulator::Now();
    from->Send(packet, to, 0x0800);
    Simulator::Schedule(Seconds(g_cell.probeEvery), &Probe, from, to);
}

double
Percentile(std::vector<double> values, double p)
{
    if (values.empty())
    {
        return 0;
    }
    std::sort(values.begin(), values.end());
    return values[std::min(values.size() - 1, size_t(p * values.size()))];
}

/// Share of contending frames of bulk senders that overlapped with another's; and those frames.
std::pair<double, uint64_t>
Collisions()
{
    struct Frame
    {
        int64_t begin;
        int64_t end;
        uint32_t node;
        bool probe;
        bool hit;
    };
    std::vector<Frame> frames;
    for (const auto& [node, sent] : g_seen.sent)
    {
        for (const auto& frame : sent)
        {
            frames.push_back({frame.begin, frame.end, node, frame.probe, false});
        }
    }
    std::sort(frames.begin(), frames.end(), [](const Frame& a, const Frame& b) { return a.begin < b.begin; });
    for (size_t i = 0; i < frames.size(); i++)
    {
        for (size_t j = i + 1; j < frames.size() && frames[j].begin < frames[i].end; j++)
        {
            frames[i].hit = frames[j].hit = true;
        }
    }
    uint64_t all = 0;
    uint64_t hit = 0;
    for (const auto& frame : frames)
    {
        all += !frame.probe;
        hit += !frame.probe && frame.hit;
    }
    return {all == 0 ? 0 : double(hit) / all, all};
}

void
Uploads(const Cell& cell)
{
    const bool probe = cell.probe != "none";
    const Air air = InstallAir(cell, cell.n + probe);
    auto ap = DynamicCast<WifiNetDevice>(air.devices.Get(0));
    ap->SetReceiveCallback(MakeCallback(&OnReceived));
    auto jitter = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 1; i <= cell.n + probe; i++)
    {
        auto device = DynamicCast<WifiNetDevice>(air.devices.Get(i));
        device->GetPhy()->TraceConnectWithoutContext("PhyTxPsduBegin", MakeBoundCallback(&OnSent, i));
        // Agreements are made one after the other.
        const Time start = MilliSeconds(20 * i) + MicroSeconds(jitter->GetInteger(0, 5000));
        if (i <= cell.n)
        {
            Simulator::Schedule(start, &Feed, device, ap->GetAddress());
        }
        else
        {
            Simulator::Schedule(start, &Probe, device, ap->GetAddress());
        }
    }
    Simulator::Stop(Seconds(cell.stop));
    Simulator::Run();
}

uint64_t g_bytes = 0;

void
OnTcp(Ptr<const Packet> packet, const Address&)
{
    g_bytes += Simulator::Now() < Seconds(g_cell.from) ? 0 : packet->GetSize();
}

void
OnUdp(Ptr<Socket> socket)
{
    while (auto packet = socket->Recv())
    {
        SeqTsHeader header;
        packet->RemoveHeader(header);
        if (Simulator::Now() >= Seconds(g_cell.from))
        {
            g_seen.delays.push_back((Simulator::Now() - header.GetTs()).GetSeconds());
        }
    }
}

void
Download(const Cell& cell)
{
    const Air air = InstallAir(cell, cell.n);
    NodeContainer server(1);
    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", StringValue(cell.wire));
    wire.SetChannelAttribute("Delay", TimeValue(Seconds(cell.wireDelay)));
    wire.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000p"));
    const NetDeviceContainer wired = wire.Install(server.Get(0), air.nodes.Get(0));
    InternetStackHelper().InstallAll();
    TrafficControlHelper control;
    if (cell.queue != "fifo")
    {
        const uint16_t root = control.SetRootQueueDisc("ns3::MqQueueDisc");
        const auto classes = control.AddQueueDiscClasses(root, 4, "ns3::QueueDiscClass");
        control.AddChildQueueDiscs(root, classes, "ns3::FqCoDelQueueDisc");
        control.Install(air.devices.Get(0));
    }
    Ipv4AddressHelper addresses("10.1.0.0", "255.255.0.0");
    const Ipv4InterfaceContainer inAir = addresses.Assign(air.devices);
    addresses.SetBase("10.2.0.0", "255.255.255.0");
    addresses.Assign(wired);
    for (uint32_t i = 0; i <= cell.n; i++)
    {
        if (i > 0 || cell.queue == "fifo")
        {
            control.Uninstall(air.devices.Get(i));
        }
    }
    control.Uninstall(wired);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    auto ap = DynamicCast<WifiNetDevice>(air.devices.Get(0));
    ap->GetPhy()->TraceConnectWithoutContext("PhyTxPsduBegin", MakeBoundCallback(&OnSent, 0u));
    for (uint32_t i = 1; i <= cell.n; i++)
    {
        const Ptr<Node> station = air.nodes.Get(i);
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
        ApplicationContainer sinks = sink.Install(station);
        sinks.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&OnTcp));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(inAir.GetAddress(i), 5000));
        bulk.Install(server.Get(0)).Start(Seconds(0.1 + 0.01 * i));
        auto socket = Socket::CreateSocket(station, UdpSocketFactory::GetTypeId());
        socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), 6000));
        socket->SetRecvCallback(MakeCallback(&OnUdp));
        if (cell.probe != "none")
        {
            UdpClientHelper client(inAir.GetAddress(i), 6000);
            client.SetAttribute("MaxPackets", UintegerValue(4000000000u));
            client.SetAttribute("Interval", TimeValue(Seconds(cell.probeEvery)));
            client.SetAttribute("PacketSize", UintegerValue(cell.probeBytes - HEADERS));
            client.Install(server.Get(0)).Start(Seconds(0.5 + 0.001 * i));
        }
    }
    Simulator::Stop(Seconds(cell.stop));
    Simulator::Run();
}

void
Print(const Cell& cell, double wallMs)
{
    const double span = cell.stop - cell.from;
    double goodput = g_bytes * 8 / span / 1e6;
    for (const auto& [node, packets] : g_seen.received)
    {
        goodput += packets * (cell.bytes - HEADERS) * 8 / span / 1e6;
    }
    const auto [collided, frames] = Collisions();
    std::cout << "{\"goodput_mbps\": " << goodput << ", \"collision\": " << collided << ", \"frames\": " << frames
              << ", \"mpdus_per_ppdu\": " << (g_seen.ppdus ? double(g_seen.mpdus) / g_seen.ppdus : 0)
              << ", \"delay_ms\": {\"count\": " << g_seen.delays.size();
    for (int p : {50, 95, 99})
    {
        std::cout << ", \"p" << p << "\": " << Percentile(g_seen.delays, p / 100.0) * 1e3;
    }
    std::cout << "}, \"modes\": {";
    const char* between = "";
    for (const auto& [mode, mpdus] : g_seen.modes)
    {
        std::cout << between << "\"" << mode << "\": " << double(mpdus) / g_seen.mpdus;
        between = ", ";
    }
    std::cout << "}, \"events\": " << Simulator::GetEventCount() << ", \"wall_ms\": " << wallMs << "}" << std::endl;
}

} // namespace

int
main(int argc, char** argv)
{
    Cell& c = g_cell;
    CommandLine arguments;
    arguments.AddValue("cell", "upload or download", c.cell);
    arguments.AddValue("standard", "n, ac or ax", c.standard);
    arguments.AddValue("width", "of the channel, MHz", c.width);
    arguments.AddValue("mcs", "of the fixed rate", c.mcs);
    arguments.AddValue("streams", "of every radio", c.streams);
    arguments.AddValue("gi", "guard interval, ns", c.gi);
    arguments.AddValue("n", "stations with a load", c.n);
    arguments.AddValue("bytes", "of an IP packet of the load", c.bytes);
    arguments.AddValue("ampdu", "most bytes of an A-MPDU; 0: none", c.ampdu);
    arguments.AddValue("window", "of block ack, MPDUs (ax)", c.window);
    arguments.AddValue("rts", "threshold, bytes", c.rts);
    arguments.AddValue("bulk", "class of the load: BE, BK, VI or VO", c.bulk);
    arguments.AddValue("probe", "class of small packets, or none", c.probe);
    arguments.AddValue("probeBytes", "IP bytes of one", c.probeBytes);
    arguments.AddValue("probeEvery", "s", c.probeEvery);
    arguments.AddValue("loss", "probability of an MPDU", c.loss);
    arguments.AddValue("snr", "of every frame, dB", c.snr);
    arguments.AddValue("rate", "fixed, ideal or minstrel", c.rate);
    arguments.AddValue("queue", "fifo or fq_codel", c.queue);
    arguments.AddValue("limit", "of the MAC's queue in a download, packets", c.limit);
    arguments.AddValue("wire", "rate of the wired link", c.wire);
    arguments.AddValue("wireDelay", "one way, s", c.wireDelay);
    arguments.AddValue("bar", "ask by BAR after a missed block ack", c.bar);
    arguments.AddValue("from", "begin of what is counted, s", c.from);
    arguments.AddValue("stop", "end of the run, s", c.stop);
    arguments.AddValue("seed", "number of the run", c.seed);
    arguments.Parse(argc, argv);

    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(c.seed);
    Defaults(c);
    const auto begun = std::chrono::steady_clock::now();
    if (c.cell == "upload")
    {
        Uploads(c);
    }
    else
    {
        Download(c);
    }
    const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begun;
    Print(c, wall.count());
    Simulator::Destroy();
    return 0;
}
