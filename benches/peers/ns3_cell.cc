// A cell of n stations in ns-3.37 (802.11g, 54 Mbit/s, no losses): each has one NewReno download, one game (200 B every
// 50 ms down, 42 B every 60 ms up) and, the first one with --video, 1400 B every 40 ms from the access point. Prints one
// line of key=value; acked counts packets that the stations received.
//
//   ns3_cell --n=16 --stop=20 --ftpStart=1 --gameStart=0.5 --video=0      the cell of ns2_cell.tcl
//   ns3_cell --n=1 --stop=180                                             like the SAP-LAW home: a download from 135 s on
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/propagation-module.h"
#include "ns3/wifi-module.h"

#include <chrono>
#include <cmath>
#include <iostream>
#include <vector>

using namespace ns3;

namespace
{

const uint32_t SEGMENT = 1460;

/// What carries the downloads: NewReno, and buffers that never limit it.
void
ConfigureTcp()
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize("100p")));
}

/// The air; the access point's device comes last.
NetDeviceContainer
InstallAir(const NodeContainer& stations, const NodeContainer& ap)
{
    YansWifiChannelHelper channel;
    channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    channel.AddPropagationLoss("ns3::LogDistancePropagationLossModel", "Exponent", DoubleValue(2.0));
    YansWifiPhyHelper phy;
    phy.SetChannel(channel.Create());
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211g);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode", StringValue("ErpOfdmRate54Mbps"),
                                 "ControlMode", StringValue("ErpOfdmRate6Mbps"),
                                 "RtsCtsThreshold", UintegerValue(65535));
    WifiMacHelper mac;
    const SsidValue ssid{Ssid("x")};
    mac.SetType("ns3::StaWifiMac", "Ssid", ssid, "ActiveProbing", BooleanValue(false), "QosSupported", BooleanValue(false));
    NetDeviceContainer devices = wifi.Install(phy, mac, stations);
    mac.SetType("ns3::ApWifiMac", "Ssid", ssid, "QosSupported", BooleanValue(false));
    devices.Add(wifi.Install(phy, mac, ap));
    return devices;
}

/// Stations on a circle of 10 m around the access point.
void
Place(const NodeContainer& stations, const NodeContainer& ap)
{
    auto positions = CreateObject<ListPositionAllocator>();
    positions->Add(Vector(0, 0, 0));
    for (uint32_t i = 0; i < stations.GetN(); i++)
    {
        const double angle = 2 * M_PI * i / stations.GetN();
        positions->Add(Vector(10 * std::cos(angle), 10 * std::sin(angle), 0));
    }
    MobilityHelper mobility;
    mobility.SetPositionAllocator(positions);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(ap);
    mobility.Install(stations);
}

void
Datagrams(Ptr<Node> from, Ptr<Node> to, Ipv4Address address, uint16_t port, uint32_t payload, double every, double start, double stop)
{
    PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    sink.Install(to).Start(Seconds(0));
    UdpClientHelper client(address, port);
    client.SetAttribute("MaxPackets", UintegerValue(4000000000u));
    client.SetAttribute("Interval", TimeValue(Seconds(every)));
    client.SetAttribute("PacketSize", UintegerValue(payload));
    ApplicationContainer source = client.Install(from);
    source.Start(Seconds(start));
    source.Stop(Seconds(stop));
}

Ptr<PacketSink>
Download(Ptr<Node> from, Ptr<Node> to, Ipv4Address address, double start, double stop)
{
    PacketSinkHelper helper("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
    ApplicationContainer sink = helper.Install(to);
    sink.Start(Seconds(0));
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(address, 5000));
    bulk.SetAttribute("MaxBytes", UintegerValue(0));
    ApplicationContainer source = bulk.Install(from);
    source.Start(Seconds(start));
    source.Stop(Seconds(stop));
    return DynamicCast<PacketSink>(sink.Get(0));
}

} // namespace

int
main(int argc, char** argv)
{
    uint32_t n = 1;
    double stop = 180;
    double ftpStart = 135;
    double gameStart = 45;
    uint32_t seed = 1;
    bool video = true;
    CommandLine arguments;
    arguments.AddValue("n", "stations", n);
    arguments.AddValue("stop", "end of the run, s", stop);
    arguments.AddValue("ftpStart", "start of the first download, s", ftpStart);
    arguments.AddValue("gameStart", "start of the first game, s", gameStart);
    arguments.AddValue("seed", "number of the run", seed);
    arguments.AddValue("video", "a video to the first station", video);
    arguments.Parse(argc, argv);

    const auto begun = std::chrono::steady_clock::now();
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(seed);
    ConfigureTcp();
    NodeContainer ap(1);
    NodeContainer stations(n);
    NodeContainer server(1);
    const NetDeviceContainer air = InstallAir(stations, ap);
    Place(stations, ap);
    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    wire.SetChannelAttribute("Delay", StringValue("40ms"));
    wire.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("140p"));
    const NetDeviceContainer wired = wire.Install(server.Get(0), ap.Get(0));
    InternetStackHelper().InstallAll();
    Ipv4AddressHelper addresses("10.1.0.0", "255.255.0.0");
    const Ipv4InterfaceContainer inAir = addresses.Assign(air);
    addresses.SetBase("10.2.0.0", "255.255.255.0");
    const Ipv4InterfaceContainer inWire = addresses.Assign(wired);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    // Payloads: sizes as in the papers are those of IP packets, and UDP over IPv4 takes 28 bytes.
    std::vector<Ptr<PacketSink>> downloads;
    for (uint32_t i = 0; i < n; i++)
    {
        const Ptr<Node> station = stations.Get(i);
        const Ipv4Address address = inAir.GetAddress(i);
        downloads.push_back(Download(server.Get(0), station, address, ftpStart + 0.01 * i, stop));
        Datagrams(server.Get(0), station, address, 6000, 200 - 28, 0.05, gameStart + 0.001 * i, stop);
        Datagrams(station, server.Get(0), inWire.GetAddress(0), 7000 + i, 42 - 28, 0.06, gameStart + 1 + 0.001 * i, stop);
        if (video && i == 0)
        {
            Datagrams(ap.Get(0), station, address, 8000, 1400, 0.04, 1.0, stop);
        }
    }
    Simulator::Stop(Seconds(stop));
    Simulator::Run();

    const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begun;
    double sum = 0;
    double squares = 0;
    for (const auto& sink : downloads)
    {
        const double bytes = sink->GetTotalRx();
        sum += bytes;
        squares += bytes * bytes;
    }
    std::cout << "n=" << n << " stop=" << stop << " seed=" << seed << " acked=" << uint64_t(sum / SEGMENT)
              << " goodput_mbps=" << sum * 8 / (stop - ftpStart) / 1e6 << " jain=" << sum * sum / (squares * n)
              << " events=" << Simulator::GetEventCount() << " wall_ms=" << wall.count() << std::endl;
    Simulator::Destroy();
    return 0;
}
