package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

// peersTimeout bounds the lookup of the peers' names.
const peersTimeout = 2 * time.Second

// peers are the servers of --peers. The addresses of a name may change.
type peers struct {
	locations []string
	names     []hostPort // every address of a name is a peer
	scheme    string
	log       *slog.Logger
	lookup    func(ctx context.Context, host string) ([]string, error)
}

type hostPort struct{ host, port string }

// parsePeers parses a list of addresses in the form of --listen, of locations, and of names dns:HOST:PORT. It returns a
// function that returns the peers' locations, or nil if there are none.
func parsePeers(e command.Env, secure bool) (func(context.Context) []string, error) {
	list := command.Words(e.Text("peers"))
	if len(list) == 0 {
		return nil, nil
	}
	p := &peers{scheme: "grpc://", log: e.Log, lookup: net.DefaultResolver.LookupHost}
	if secure {
		p.scheme = "grpc+tls://"
	}
	for _, word := range list {
		name, dns := strings.CutPrefix(word, "dns:")
		address := strings.TrimLeft(name, "/")
		host, port, err := net.SplitHostPort(address)
		_, number := strconv.ParseUint(port, 10, 16)
		valid := err == nil && number == nil && host != ""
		switch {
		case dns && valid:
			p.names = append(p.names, hostPort{host, port})
		case !dns && (strings.Contains(word, "://") || strings.HasPrefix(word, "unix:")):
			p.locations = append(p.locations, connect.LocationOf(word))
		case !dns && valid:
			p.locations = append(p.locations, p.scheme+address)
		default:
			return nil, command.Usagef(e.Cmd, "--peers: %q must be HOST:PORT, unix:PATH, a location such as "+
				"grpc+tls://gpu1.lab:8815, or dns:HOST:PORT for every address of a name", word)
		}
	}
	return p.get, nil
}

// get returns the locations of all peers: the locations, then those of the names, sorted by address, so that all
// servers return the same list. Names that cannot be looked up are left out.
func (p *peers) get(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, peersTimeout)
	defer cancel()
	locations := slices.Clone(p.locations)
	for _, name := range p.names {
		addresses, err := p.lookup(ctx, name.host)
		if err != nil {
			p.log.Warn("the addresses of peers cannot be found", "name", name.host, "error", fmt.Sprint(err))
		}
		slices.Sort(addresses)
		for _, address := range slices.Compact(addresses) {
			locations = append(locations, p.scheme+net.JoinHostPort(address, name.port))
		}
	}
	return locations
}
