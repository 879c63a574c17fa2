// gVisor's netstack behind an adapter: carries bytes between local stream sockets and connections of netstack over a TUN device.
//
// The protocol is told in docs/guide/stacks.md and crates/stacks/src/protocol.rs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/tun"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

const (
	nic      = 1
	headers  = 40 // IPv4 and TCP without options
	atOnce   = 64 * 1024
	patience = 60 * time.Second
	refused  = 3
)

type arguments struct {
	device, listen   string
	address          netip.Addr
	server           netip.AddrPort
	mtu, mss, window uint32
	options          map[string]string
}

type counted struct {
	connections, in, out atomic.Uint64
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(refused)
}

func say(line map[string]any) {
	text, err := json.Marshal(line)
	if err != nil {
		fail(err)
	}
	fmt.Println(string(text))
}

func parse(args []string) (arguments, error) {
	parsed := arguments{options: map[string]string{}}
	if len(args)%2 != 0 {
		return parsed, errors.New("each flag needs a value")
	}
	for i := 0; i < len(args); i += 2 {
		flag, value := args[i], args[i+1]
		number := func(into *uint32) error {
			bytes, err := strconv.ParseUint(value, 10, 30)
			*into = uint32(bytes)
			return err
		}
		var err error
		switch flag {
		case "--device":
			parsed.device = value
		case "--listen":
			parsed.listen = value
		case "--address":
			parsed.address, err = netip.ParseAddr(value)
		case "--server":
			parsed.server, err = netip.ParseAddrPort(value)
		case "--mtu":
			err = number(&parsed.mtu)
		case "--mss":
			err = number(&parsed.mss)
		case "--window":
			err = number(&parsed.window)
		case "--option":
			key, setting, _ := strings.Cut(value, "=")
			parsed.options[key] = setting
		default:
			err = fmt.Errorf("there is no flag %s", flag)
		}
		if err != nil {
			return parsed, fmt.Errorf("%s: %w", flag, err)
		}
	}
	if parsed.device == "" || parsed.listen == "" || !parsed.address.Is4() || !parsed.server.Addr().Is4() || parsed.mtu < 576 {
		return parsed, errors.New("--device, --listen, --address, --server and --mtu are needed")
	}
	if parsed.mss > 0 && parsed.mss+headers < parsed.mtu {
		parsed.mtu = parsed.mss + headers
	}
	return parsed, nil
}

// version is that of the module that was built in.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, module := range info.Deps {
			if module.Path == "gvisor.dev/gvisor" {
				return module.Version
			}
		}
	}
	return "?"
}

// told turns netstack's errors, which are no errors of Go, into such.
func told(what string, err tcpip.Error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s", what, err)
}

// start brings the stack up behind the device; it says what was set, and what can't be.
func start(args arguments) (*stack.Stack, map[string]any, []string, error) {
	fd, err := tun.Open(args.device)
	if err != nil {
		return nil, nil, nil, err
	}
	endpoint, err := fdbased.New(&fdbased.Options{FDs: []int{fd}, MTU: args.mtu})
	if err != nil {
		return nil, nil, nil, err
	}
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	granted := map[string]any{"mtu": args.mtu, "mss": args.mtu - headers}
	var cannot []string
	set := func(option tcpip.SettableTransportProtocolOption) error {
		return told("set", s.SetTransportProtocolOption(tcp.ProtocolNumber, option))
	}
	// As its own documentation recommends, and as everybody sets it.
	sack := tcpip.TCPSACKEnabled(true)
	if err := set(&sack); err != nil {
		return nil, nil, nil, err
	}
	if args.window > 0 {
		// It advertises half of its buffer, and keeps the other half for what packets take beyond their payload.
		buffer := 2 * int(args.window)
		fixed := tcpip.TCPReceiveBufferSizeRangeOption{Min: 1, Default: buffer, Max: buffer}
		moderate := tcpip.TCPModerateReceiveBufferOption(false)
		if err := errors.Join(set(&fixed), set(&moderate)); err != nil {
			return nil, nil, nil, err
		}
		granted["rwin"] = args.window
	}
	for key, value := range args.options {
		if key != "cc" {
			cannot = append(cannot, "gvisor has no option "+key)
			continue
		}
		control := tcpip.CongestionControlOption(value)
		if err := set(&control); err != nil {
			return nil, nil, nil, fmt.Errorf("cc=%s: %w", value, err)
		}
		granted["cc"] = value
	}
	address := tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddrFrom4(args.address.As4()).WithPrefix(),
	}
	err = errors.Join(
		told("make the device", s.CreateNIC(nic, endpoint)),
		told("set the address", s.AddProtocolAddress(nic, address, stack.AddressProperties{})),
	)
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return s, granted, cannot, err
}

// carry is one connection from its first byte to its last.
func carry(s *stack.Stack, args arguments, near *net.UnixConn, counts *counted) {
	defer near.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	to := tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFrom4(args.server.Addr().As4()), Port: args.server.Port()}
	far, err := gonet.DialContextTCP(ctx, s, to, ipv4.ProtocolNumber)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer far.Close()
	counts.connections.Add(1)
	if _, err := near.Write([]byte("+")); err != nil {
		return
	}
	go func() {
		buffer := make([]byte, atOnce)
		for {
			n, err := near.Read(buffer)
			if n > 0 {
				if _, err := far.Write(buffer[:n]); err != nil {
					return
				}
				counts.out.Add(uint64(n))
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					far.CloseWrite()
				}
				return
			}
		}
	}()
	buffer := make([]byte, atOnce)
	for {
		n, err := far.Read(buffer)
		if n > 0 {
			if _, err := near.Write(buffer[:n]); err != nil {
				return
			}
			counts.in.Add(uint64(n))
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				near.CloseWrite()
			}
			return
		}
	}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--describe" {
		say(map[string]any{"protocol": 1, "name": "gvisor", "version": version(), "options": []string{"cc"}})
		return
	}
	args, err := parse(os.Args[1:])
	if err != nil {
		fail(err)
	}
	s, granted, cannot, err := start(args)
	if err != nil {
		fail(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: args.listen, Net: "unix"})
	if err != nil {
		fail(err)
	}
	if cannot == nil {
		cannot = []string{}
	}
	say(map[string]any{"ready": true, "name": "gvisor", "version": version(), "granted": granted, "refused": cannot})
	var counts counted
	go func() {
		for {
			near, err := listener.AcceptUnix()
			if err != nil {
				return
			}
			go carry(s, args, near, &counts)
		}
	}()
	io.Copy(io.Discard, os.Stdin)
	say(map[string]any{
		"done": true, "connections": counts.connections.Load(), "bytes_in": counts.in.Load(), "bytes_out": counts.out.Load(),
	})
}
