// Flows from one host to another over one link, in ns-3: what the model is timed against.
//
// Arguments: rate in bit/s, one-way delay in ms, queue in packets, flows, simulated seconds, bytes of each socket buffer.
// Prints packets on the link both ways, seconds of computing, payload received in bytes, and the peak of resident memory in kB.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <chrono>
#include <fstream>
#include <iostream>
#include <string>

using namespace ns3;

static uint64_t g_packets = 0;

static void
Count(Ptr<const Packet>)
{
    ++g_packets;
}

static std::string
PeakMemory()
{
    std::ifstream status("/proc/self/status");
    std::string word;
    while (status >> word)
    {
        if (word == "VmHWM:")
        {
            status >> word;
            return word;
        }
    }
    return "0";
}

int
main(int argc, char* argv[])
{
    if (argc != 7)
    {
        std::cerr << "rate delay queue flows seconds buffer" << std::endl;
        return 2;
    }
    const std::string rate = std::string(argv[1]) + "bps";
    const std::string delay = std::string(argv[2]) + "ms";
    const std::string queue = std::string(argv[3]) + "p";
    const int flows = std::stoi(argv[4]);
    const double seconds = std::stod(argv[5]);
    const uint32_t buffer = std::stoul(argv[6]);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));

    NodeContainer hosts;
    hosts.Create(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", StringValue(delay));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(queue));
    NetDeviceContainer devices = link.Install(hosts);
    InternetStackHelper stack;
    stack.Install(hosts);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    // The queue of the device alone is the link's.
    TrafficControlHelper control;
    control.Uninstall(devices);
    for (uint32_t n = 0; n < 2; ++n)
    {
        devices.Get(n)->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&Count));
    }

    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
    ApplicationContainer sinks = sink.Install(hosts.Get(1));
    for (int n = 0; n < flows; ++n)
    {
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(1), 9));
        source.SetAttribute("MaxBytes", UintegerValue(0));
        source.SetAttribute("SendSize", UintegerValue(14480));
        ApplicationContainer sources = source.Install(hosts.Get(0));
        sources.Start(MilliSeconds(n));
    }

    Simulator::Stop(Seconds(seconds));
    const auto begin = std::chrono::steady_clock::now();
    Simulator::Run();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    const uint64_t received = DynamicCast<PacketSink>(sinks.Get(0))->GetTotalRx();
    std::cout << g_packets << " " << taken.count() << " " << received << " " << PeakMemory() << std::endl;
    Simulator::Destroy();
    return 0;
}
