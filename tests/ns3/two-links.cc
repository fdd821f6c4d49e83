// A TCP transfer over two links of 1 Gb/s with a store-and-forward node
// between, on ns-3. Prints simulated seconds, wall seconds, processor
// seconds, events, bytes.
// TCP as in farlane's simulator: segments of 1460 bytes, acknowledgements at
// once, neither SACK nor timestamps.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>

using namespace ns3;

int main(int argc, char* argv[]) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 1.0;
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1460));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 20));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    NodeContainer nodes;
    nodes.Create(3);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    link.SetChannelAttribute("Delay", StringValue("10ns"));
    const NetDeviceContainer first = link.Install(nodes.Get(0), nodes.Get(1));
    const NetDeviceContainer second = link.Install(nodes.Get(1), nodes.Get(2));
    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.1.0", "255.255.255.0");
    addresses.Assign(first);
    addresses.SetBase("10.0.2.0", "255.255.255.0");
    const Ipv4InterfaceContainer far = addresses.Assign(second);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    const uint16_t port = 4420;
    BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(far.GetAddress(1), port));
    sender.SetAttribute("MaxBytes", UintegerValue(0));
    sender.Install(nodes.Get(0)).Start(Seconds(0));
    PacketSinkHelper receiver("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    ApplicationContainer sink = receiver.Install(nodes.Get(2));
    sink.Start(Seconds(0));
    Simulator::Stop(Seconds(seconds));
    const auto began = std::chrono::steady_clock::now();
    const std::clock_t clock = std::clock();
    Simulator::Run();
    const double cpu = double(std::clock() - clock) / CLOCKS_PER_SEC;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
    const uint64_t events = Simulator::GetEventCount();
    const uint64_t bytes = DynamicCast<PacketSink>(sink.Get(0))->GetTotalRx();
    std::cout << seconds << ' ' << wall.count() << ' ' << cpu << ' ' << events << ' ' << bytes << std::endl;
    Simulator::Destroy();
    return 0;
}
