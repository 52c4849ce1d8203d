use super::*;
use crate::channel::{Channel, ChannelError};
use crate::protocol::{Reply, Request};
use crate::tls::{Identity, client_config};
use crate::tuning::End;
use crate::tuning::quantity::{Delay, PacketSize};
use std::io::{Cursor, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const IDLE: Duration = Duration::from_secs(20);

/// Two ends of one connection; the server's is used in a thread, as each writes what the other must read.
fn pair() -> (Channel, thread::JoinHandle<Channel>) {
    let identity = Identity::from_pem(Identity::generate().unwrap().as_bytes()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (config, name) = client_config(identity.pin());
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let server_config = identity.server_config().unwrap();
    let server = thread::spawn(move || {
        let mut server = Channel::server(listener.accept().unwrap().0, server_config, IDLE).unwrap();
        server.receive::<Request>().unwrap();
        server
    });
    let mut client = Channel::client(client, config, name, IDLE).unwrap();
    client.send(&Request::Ping(0)).unwrap();
    (client, server)
}

fn end(packet: u32, delay_us: u32) -> End {
    let (packet, delay) = (PacketSize::new(packet).unwrap(), Delay::micros(delay_us).unwrap());
    End { packet, delay, ..End::default() }
}

fn body(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * i % 253) as u8).collect()
}

fn go_on(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Remembers the size of every write, as storage would see it.
#[derive(Default)]
struct Storage {
    bytes: Vec<u8>,
    writes: Vec<usize>,
}

impl Write for Storage {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        self.writes.push(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_message_arrives_whole_whatever_the_packets_of_both_ends_and_storage_is_written_in_the_receivers() {
    let message = body(100_000);
    for (sent, written) in [(512, 65_536), (65_536, 512), (3_072, 3_072), (5_000, 7_128), (1 << 20, 1 << 20)] {
        let (mut client, server) = pair();
        let copy = message.clone();
        let sender = thread::spawn(move || {
            let mut hash = Hash::new();
            send(&mut client, &mut Cursor::new(copy), 0..100_000, &end(sent, 0), Some(&mut hash), &mut go_on).unwrap();
            client.send(&Request::Finish { sha256: hash.finish() }).unwrap();
            client
        });
        let mut server = server.join().unwrap();
        let mut receiver = Receiver::new(Storage::default(), &end(written, 0), 0, 100_000, Hash::new());
        let last = receive::<Request, _>(&mut server, &mut receiver, &mut go_on).unwrap();
        let (storage, sha256, progress) = receiver.finish().unwrap();
        assert_eq!((storage.bytes == message, progress.bytes), (true, 100_000), "{sent} {written}");
        assert_eq!(last, Request::Finish { sha256 });
        let (tail, whole) = storage.writes.split_last().unwrap();
        assert!(whole.iter().all(|size| *size == written as usize), "{:?}", storage.writes);
        assert!(*tail <= written as usize);
        sender.join().unwrap();
    }
}

#[test]
fn a_transfer_goes_on_where_it_ended_with_the_same_sum() {
    let message = body(10_000);
    let mut whole = Hash::new();
    whole.add(&message);
    let mut hash = Hash::of_prefix(&mut &message[..], 3_333).unwrap();
    let (mut client, server) = pair();
    let mut rest = Cursor::new(&message[3_333..]);
    send(&mut client, &mut rest, 3_333..10_000, &end(512, 0), Some(&mut hash), &mut go_on).unwrap();
    client.send(&Request::Finish { sha256: hash.finish() }).unwrap();
    let prefix = Hash::of_prefix(&mut &message[..], 3_333).unwrap();
    let mut receiver = Receiver::new(Storage::default(), &end(700, 0), 3_333, 10_000, prefix);
    receive::<Request, _>(&mut server.join().unwrap(), &mut receiver, &mut go_on).unwrap();
    let (storage, sha256, _) = receiver.finish().unwrap();
    assert_eq!(storage.bytes, message[3_333..]);
    assert_eq!(sha256, whole.finish());
    assert!(Hash::of_prefix(&mut &message[..], 10_001).is_err());
}

#[test]
fn a_sum_goes_back_and_forth_without_reading_what_it_knows() {
    let message = body(40 << 20);
    let sum = |bytes: usize| Hash::of_prefix(&mut &message[..], bytes as u64).unwrap().finish();
    let mut hash = Hash::of_prefix(&mut &message[..], 40 << 20).unwrap();
    for (to, reads) in [(33 << 20, 1 << 20), (40 << 20, 7 << 20), (17 << 20, 1 << 20), (5, 5), (6, 1), (0, 0)] {
        let mut source = Counted { source: Cursor::new(&message[..]), read: 0 };
        hash.move_to(&mut source, to as u64).unwrap();
        assert_eq!((hash.clone().finish(), hash.bytes(), source.read), (sum(to), to as u64, reads), "to {to}");
    }
    assert!(hash.move_to(&mut Cursor::new(b"short"), 6).is_err());
}

struct Counted<'a> {
    source: Cursor<&'a [u8]>,
    read: usize,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.read(buffer).inspect(|bytes| self.read += bytes)
    }
}

impl Seek for Counted<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.source.seek(to)
    }
}

#[test]
fn both_ends_sleep_between_packets_and_not_behind_the_last() {
    let (mut client, server) = pair();
    let mut none = Cursor::new(body(2_048));
    let sent = send(&mut client, &mut none, 0..2_048, &end(512, 2_000), None, &mut go_on).unwrap();
    client.send(&Request::Ping(1)).unwrap();
    let mut receiver = Receiver::new(Storage::default(), &end(512, 3_000), 0, 2_048, Hash::new());
    let mut server = server.join().unwrap();
    receive::<Request, _>(&mut server, &mut receiver, &mut go_on).unwrap();
    assert!(sent.asleep >= Duration::from_micros(3 * 2_000), "three sleeps between four packets");
    assert!(receiver.progress().spent.asleep >= Duration::from_micros(3 * 3_000));
    let mut one = Cursor::new(body(512));
    let alone = send(&mut client, &mut one, 0..512, &end(512, 2_000), None, &mut go_on).unwrap();
    assert_eq!(alone.asleep, Duration::ZERO);
}

#[test]
fn a_packet_out_of_place_or_beyond_the_end_is_refused_and_nothing_of_it_is_written() {
    let mut receiver = Receiver::new(Storage::default(), &end(512, 0), 100, 1_000, Hash::new());
    for offset in [0, 99, 101, u64::MAX] {
        let error = receiver.packet(offset, &[0; 600]).unwrap_err();
        assert!(matches!(error, ReceiveError::OutOfPlace { expected: 100, came } if came == offset));
    }
    assert!(matches!(receiver.packet(100, &[0; 901]), Err(ReceiveError::TooMuch)));
    receiver.packet(100, &[0; 900]).unwrap();
    assert!(matches!(receiver.packet(1_000, &[0; 1]), Err(ReceiveError::TooMuch)));
    assert_eq!(receiver.finish().unwrap().0.bytes.len(), 900);
}

#[test]
fn what_came_before_a_cut_is_written() {
    let (mut client, server) = pair();
    let mut message = Cursor::new(body(1_300));
    send(&mut client, &mut message, 0..1_300, &end(512, 0), None, &mut go_on).unwrap();
    drop(client);
    let mut receiver = Receiver::new(Storage::default(), &end(1_024, 0), 0, 5_000, Hash::new());
    let cut = receive::<Request, _>(&mut server.join().unwrap(), &mut receiver, &mut go_on);
    assert!(matches!(cut, Err(ReceiveError::Channel(ChannelError::Closed))), "{:?}", cut.err());
    assert_eq!((receiver.sink().bytes.len(), receiver.progress().bytes), (1_300, 1_300));
}

#[test]
fn what_has_become_shorter_is_an_error_and_so_is_a_word_of_the_receiver() {
    let (mut client, server) = pair();
    let mut short = Cursor::new(body(600));
    let error = send(&mut client, &mut short, 0..1_024, &end(512, 0), None, &mut go_on).unwrap_err();
    assert!(matches!(error, SendError::Shorter), "{error}");
    let mut server = server.join().unwrap();
    assert!(!client.has_incoming().unwrap(), "tickets of TLS are no word of the server");
    server.send(&Reply::Done).unwrap();
    let mut long = io::repeat(7);
    let error = send(&mut client, &mut long, 0..u64::MAX, &end(512, 1_000), None, &mut go_on).unwrap_err();
    assert!(matches!(error, SendError::Interrupted), "{error}");
    assert!(matches!(client.receive::<Reply>().unwrap(), crate::channel::Incoming::Control(Reply::Done)));
}

#[test]
fn the_watcher_ends_a_transfer() {
    let (mut client, _server) = pair();
    let mut stop_at_1024 = |progress: &Progress| match progress.bytes {
        1_024.. => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let error = send(&mut client, &mut io::repeat(7), 0..u64::MAX, &end(512, 0), None, &mut stop_at_1024).unwrap_err();
    assert!(matches!(error, SendError::Stopped));
}
