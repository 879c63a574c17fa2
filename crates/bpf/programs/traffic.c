/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Assigns each new connection of a server to an arm of an experiment, sets the arm's options, and records what became of it.
 *
 * A sockops program at the root of the control groups: it sees connections of every network namespace and leaves alone all but
 * those of one. It reads the context alone, so that neither CO-RE nor CAP_PERFMON is needed. Which arm a connection gets is a
 * keyed hash of where it comes from: a request has nowhere to keep a note, so that it must be drawn twice alike. Of a client
 * only a hash under a second key is recorded: the hash of the draw would tell the coin to whoever predicts from it.
 *
 * With -DIDLE it also reads for how long a connection had nothing outstanding, between the responses of a client that keeps it
 * open, and a second program lists the connections that are still open: that takes CAP_PERFMON, and the kernel's own structs.
 * With -DRESPONSES it times each response by itself, to the moment at which its last byte is acknowledged: that takes Linux 6.15,
 * too. Where one of these is missing, the program without it is loaded.
 *
 * What it shares with the loader and with the kernel is in traffic.h, where it keeps what it knows of a connection in notes.h, and
 * when a response begins and ends in responses.h.
 */
#include "traffic.h"
#include "notes.h"

#define ROTL(x, b) ((x) << (b) | (x) >> (64 - (b)))
#define ROUND                                                                                                            \
	do {                                                                                                             \
		v0 += v1; v1 = ROTL(v1, 13); v1 ^= v0; v0 = ROTL(v0, 32);                                                \
		v2 += v3; v3 = ROTL(v3, 16); v3 ^= v2;                                                                   \
		v0 += v3; v3 = ROTL(v3, 21); v3 ^= v0;                                                                   \
		v2 += v1; v1 = ROTL(v1, 17); v1 ^= v2; v2 = ROTL(v2, 32);                                                \
	} while (0)

/* SipHash-1-3 (Aumasson, Bernstein 2012) of three words. */
INLINE u64 siphash(volatile u64 *key, u64 a, u64 b, u64 c)
{
	u64 k0 = key[0], k1 = key[1], end = 24ULL << 56;
	u64 v0 = k0 ^ 0x736f6d6570736575ULL, v1 = k1 ^ 0x646f72616e646f6dULL;
	u64 v2 = k0 ^ 0x6c7967656e657261ULL, v3 = k1 ^ 0x7465646279746573ULL;
	v3 ^= a; ROUND; v0 ^= a;
	v3 ^= b; ROUND; v0 ^= b;
	v3 ^= c; ROUND; v0 ^= c;
	v3 ^= end; ROUND; v0 ^= end;
	v2 ^= 0xff; ROUND; ROUND; ROUND;
	return v0 ^ v1 ^ v2 ^ v3;
}

INLINE struct counters *counters(void)
{
	return &control.counters[processor() & (PROCESSORS - 1)];
}

/* Atomically: an interrupt may come between. */
INLINE void count(int which)
{
	__sync_fetch_and_add(&counters()->counts[which], 1);
}

/* Private, shared and link-local ranges (RFC 1918, 6598, 3927) in host order. */
INLINE int is_private(u32 a)
{
	return a >> 24 == 10 || a >> 20 == 0xac1 || a >> 16 == 0xc0a8 || a >> 16 == 0xa9fe || a >> 22 == 0x6440 >> 6;
}

/* The same of IPv6 (RFC 4291, 4193): fe80::/10, fc00::/7. */
INLINE int is_private6(u64 high)
{
	return high >> 54 == 0x3fa || high >> 57 == 0x7e;
}

/* Whether an address is one of this host's own. */
INLINE int is_own(u64 high, u64 low)
{
	u32 i;

	if (!(control.own_mask >> ((high ^ low ^ low >> 8) & 63) & 1))
		return 0;
#pragma clang loop unroll(disable)
	for (i = 0; i < OWN_ADDRESSES; i++) {
		if (i >= control.own_addresses)
			return 0;
		if (control.own[2 * i] == high && control.own[2 * i + 1] == low)
			return 1;
	}
	return 0;
}

/* The name of a socket's congestion control, as two words; whether it is known. */
INLINE int control_of(struct bpf_sock_ops *s, void *sk, u64 *name)
{
#ifdef IDLE
	struct tcp_sock *tcp = sk ? to_tcp_sock(sk) : 0;
	struct tcp_congestion_ops *cc;

	(void)s;
	if (!tcp)
		return 0;
	cc = tcp->inet_conn.icsk_ca_ops;
	name[0] = *(volatile u64 *)&cc->name[0];
	name[1] = *(volatile u64 *)&cc->name[8];
	return 1;
#else
	(void)sk;
	return !get_option(s, 6, 13, name, 16);
#endif
}

/* The arm, or less than 0: which count of those that are left alone; the client's tag and the time of an arm. */
INLINE int decide(struct bpf_sock_ops *s, u64 *tag, u64 *now)
{
	volatile struct bpf_sock_ops *v = s; /* one load for each field, or else the verifier refuses */
	u64 port = v->local_port, prefix, rest, draw, high, low;
	u32 family = v->family, r4 = v->remote_ip4;
	u32 r0 = v->remote_ip6[0], r1 = v->remote_ip6[1], r2 = v->remote_ip6[2], r3 = v->remote_ip6[3], rp = v->remote_port;
	u32 l4 = v->local_ip4, l0 = v->local_ip6[0], l1 = v->local_ip6[1], l2 = v->local_ip6[2], l3 = v->local_ip6[3];
	u32 i, named = 0;

#pragma unroll
	for (i = 0; i < PORTS; i++)
		if (i < control.ports && control.port[i] == port)
			named = 1;
	if (!named)
		return -OTHER_PORT;
	high = (u64)NTOHL(r0) << 32 | NTOHL(r1);
	low = (u64)NTOHL(r2) << 32 | NTOHL(r3);
	if (family == 2) {
		high = 0;
		low = 0xffffULL << 32 | NTOHL(r4);
		named = r4 == l4;
	} else {
		named = r0 == l0 && r1 == l1 && r2 == l2 && r3 == l3;
	}
	if (control.skip_loopback && (named || is_own(high, low)))
		return -PRIVATE_ADDRESS;
#pragma unroll
	for (i = 0; i < ADMINISTRATORS; i++)
		if (i < control.administrators && control.administrator[2 * i] == high && control.administrator[2 * i + 1] == low)
			return -ADMINISTRATOR;
	if (!high && low >> 32 == 0xffff) {
		u32 address = low;
		if ((control.skip_loopback && address >> 24 == 127) || (control.skip_private && is_private(address)))
			return -PRIVATE_ADDRESS;
		prefix = address >> 8 | 4ULL << 60;
		rest = (u64)(address & 255) << 32;
	} else {
		if ((control.skip_loopback && !high && low == 1) || (control.skip_private && is_private6(high)))
			return -PRIVATE_ADDRESS;
		prefix = high >> 16 | 6ULL << 60;
		rest = low ^ high << 40;
	}
	*now = now_ns();
	if (*now > control.heartbeat_ns + control.patience_ns)
		return -PAUSED;
	*tag = siphash(control.tag_key, prefix, 0, 0);
	/* linux/bpf.h: the remote port in network order, in the upper half where the lower byte comes first */
	rest ^= (u64)NTOHL(rp) << 16 | 1;
	draw = siphash(control.key, prefix, control.epoch, control.by_connection ? rest : 0) >> 32;
#pragma unroll
	for (i = 0; i < ARMS; i++)
		if (i < control.arms && draw < control.below[i])
			return i;
	return -OUTSIDE;
}

/* Whether an option isn't what it was set to. Times are whole jiffies, of 10 ms at most, and older kernels don't tell them. */
INLINE int differs(struct bpf_sock_ops *s, int level, int name, u32 value, u32 bit)
{
	u32 now = value, slack = name == 1003 || name == 1004 ? 20000 : 0;

	if (name == 1001 || name == 1002 || get_option(s, level, name, &now, sizeof(now)))
		return 0;
	return now > value + slack || value > now + slack ? 1 << bit : 0;
}

/* Sets an option, and reads back what the kernel has made of it. */
INLINE int set(struct bpf_sock_ops *s, int level, int name, u32 value, u32 bit)
{
	if (set_option(s, level, name, &value, sizeof(value)))
		return 1 << bit;
	return differs(s, level, name, value, bit);
}

INLINE u32 rate_of(struct arm *arm)
{
	return arm->pacing > 0xfffffffeULL ? 0xfffffffe : arm->pacing;
}

INLINE void established(struct bpf_sock_ops *s)
{
	u64 tag = 0, now = 0, *usual = (u64 *)control.usual_cc;
	int chosen = decide(s, &tag, &now), refused = 0;
	void *sk = s->sk; /* loaded once, tested once */
	struct arm *arm;
	struct note *n;
	u64 has[2] = {};
	u32 has_cc = 0;

	if (chosen < 0 || !sk) {
		count(chosen < 0 ? -chosen : NO_NOTE);
		return;
	}
	if (control.skip_own_cc || control.varies_cc)
		has_cc = control_of(s, sk, has);
	if (control.skip_own_cc) {
		if (has[0] != usual[0] || has[1] != usual[1]) {
			count(OWN_CC);
			return;
		}
	}
	n = new_note(sk, cookie_of(s));
	if (!n) {
		count(NO_NOTE);
		return;
	}
	chosen &= ARMS - 1;
	arm = &control.arm[chosen];
	if (arm->initcwnd) /* before the congestion control, which may compute a rate from it */
		refused |= set(s, 6, 1001, arm->initcwnd, 1);
	if (arm->cwnd_clamp)
		refused |= set(s, 6, 1002, arm->cwnd_clamp, 4);
	if (arm->rto_min_us)
		refused |= set(s, 6, 1004, arm->rto_min_us, 5);
	if (arm->delack_max_us)
		refused |= set(s, 6, 1003, arm->delack_max_us, 6);
	if (arm->notsent_lowat)
		refused |= set(s, 6, 25, arm->notsent_lowat, 7);
	if (arm->window_clamp)
		refused |= set(s, 6, 10, arm->window_clamp, 8);
	if (arm->pacing)
		refused |= set(s, 1, 47, rate_of(arm), 9);
	if (arm->cc[0]) {
		u64 wanted[2] = {((u64 *)arm->cc)[0], ((u64 *)arm->cc)[1]};
		/* what it has already needs neither be set nor read once more */
		if (!has_cc || has[0] != wanted[0] || has[1] != wanted[1]) {
			if (set_option(s, 6, 13, wanted, sizeof(wanted)))
				refused |= 1;
			control_of(s, sk, has);
		}
	}
	if (control.varies_cc) {
		((u64 *)n->cc)[0] = has[0];
		((u64 *)n->cc)[1] = has[1];
	}
	n->tag = tag;
	n->epoch = control.epoch;
	n->arm = chosen;
	n->refused = refused;
	n->rtos = 0;
	n->finished_ns = 0;
	n->idle_ns = 0;
	n->took_ns = 0;
	n->took_bytes = 0;
	n->responses = 0;
	n->under_way = 0;
#ifdef IDLE
	n->since_jiffies = jiffies64();
#endif
#ifdef RESPONSES
	{
		u32 on = 1; /* SK_BPF_CB_TX_TIMESTAMPING, by SK_BPF_CB_FLAGS of SOL_SOCKET */
		n->end_seq = ((volatile struct bpf_sock_ops *)s)->snd_nxt;
		n->busy_jiffies = 0;
		set_option(s, 1, 1009, &on, sizeof(on));
	}
#endif
	n->cwnd = ((volatile struct bpf_sock_ops *)s)->snd_cwnd;
	n->since_ns = now;
	__sync_fetch_and_add(&counters()->assigned[chosen], 1);
	set_flags(s, RTO_FLAG | STATE_FLAG);
}

/* Options of its arm that somebody has changed since. */
INLINE u32 changed(struct bpf_sock_ops *s, void *sk, struct note *n)
{
	struct arm *arm = &control.arm[n->arm & (ARMS - 1)];
	u32 bits = 0;

	if (control.varies_cc) {
		u64 cc[2] = {};
		control_of(s, sk, cc);
		bits |= cc[0] != ((u64 *)n->cc)[0] || cc[1] != ((u64 *)n->cc)[1];
	}
	if (arm->rto_min_us)
		bits |= differs(s, 6, 1004, arm->rto_min_us, 5);
	if (arm->delack_max_us)
		bits |= differs(s, 6, 1003, arm->delack_max_us, 6);
	if (arm->notsent_lowat)
		bits |= differs(s, 6, 25, arm->notsent_lowat, 7);
	if (arm->window_clamp)
		bits |= differs(s, 6, 10, arm->window_clamp, 8);
	if (arm->pacing)
		bits |= differs(s, 1, 47, rate_of(arm), 9);
	return bits & ~n->refused;
}

/* What the note has, and what its socket had at its end, or has now. */
#define FILL(r, n, now, v, state_before, una, smallest_rtt, congested)                                                   \
	do {                                                                                                             \
		r->tag = n->tag;                                                                                         \
		r->epoch = n->epoch;                                                                                     \
		r->since_ns = n->since_ns;                                                                               \
		r->lasted_ns = now - n->since_ns;                                                                        \
		r->finished_ns = n->finished_ns ? n->finished_ns - n->since_ns : 0;                                      \
		r->idle_ns = n->idle_ns;                                                                                 \
		r->bytes_acked = v->bytes_acked;                                                                         \
		r->bytes_received = v->bytes_received;                                                                   \
		r->arm = n->arm;                                                                                         \
		r->refused = n->refused;                                                                                 \
		r->rtos = n->rtos;                                                                                       \
		r->initcwnd = n->cwnd;                                                                                   \
		r->last_state = state_before;                                                                            \
		r->unacked = v->snd_nxt - una;                                                                           \
		r->srtt_us = v->srtt_us >> 3;                                                                            \
		r->min_rtt_us = smallest_rtt;                                                                            \
		r->retransmitted = v->total_retrans;                                                                     \
		r->segments_out = v->segs_out;                                                                           \
		r->data_segments_out = v->data_segs_out;                                                                 \
		r->segments_in = v->segs_in;                                                                             \
		r->cwnd = v->snd_cwnd;                                                                                   \
		r->mss = v->mss_cache;                                                                                   \
		r->ecn = congested;                                                                                      \
		r->response_ns = n->took_ns;                                                                             \
		r->response_ended_ns = n->took_ns ? n->ended_ns - n->since_ns : 0;                                       \
		r->response_bytes = n->took_bytes;                                                                       \
		r->responses = n->responses;                                                                             \
		r->response_cut = n->under_way;                                                                          \
		r->spare = 0;                                                                                            \
	} while (0)

INLINE void ended(struct bpf_sock_ops *s, void *sk, struct note *n, u64 now)
{
	volatile struct bpf_sock_ops *v = s;
	struct record *r = reserve(&records, sizeof(*r), 0);
	u32 una;

	if (!r) {
		__sync_fetch_and_add(&counters()->lost[n->arm & (ARMS - 1)], 1); /* the ring is full */
		return;
	}
	una = v->snd_una;
	FILL(r, n, now, v, v->args[0], una, v->rtt_min, v->ecn_flags & 1);
	r->changed = changed(s, sk, n);
	submit(r, 1); /* the reader looks by itself: no wake-up for each connection */
	count(RECORDED);
}

#ifdef IDLE
/* For how many jiffies something was outstanding (tcp_chrono_start() and _stop() in net/ipv4/tcp_output.c). */
INLINE u32 busy_of(struct tcp_sock *tcp, u64 jiffies)
{
	u32 busy = tcp->chrono_stat[0] + tcp->chrono_stat[1] + tcp->chrono_stat[2];

	if (tcp->chrono_type & 3)
		busy += (u32)jiffies - tcp->chrono_start;
	return busy;
}

/* The part of so long in which nothing was outstanding. */
INLINE u64 idle_of(struct tcp_sock *tcp, struct note *n, u64 lasted_ns)
{
	u64 jiffies = jiffies64(), all = jiffies - n->since_jiffies, busy = busy_of(tcp, jiffies);

	return all && busy < all ? lasted_ns / all * (all - busy) : 0;
}
#endif

/* The last response that has ended. */
INLINE void fill_response(struct response *r, struct note *n)
{
	r->tag = n->tag;
	r->epoch = n->epoch;
	r->since_ns = n->since_ns;
	r->ended_ns = n->ended_ns - n->since_ns;
	r->took_ns = n->took_ns;
	r->arm = n->arm;
	r->bytes = n->took_bytes;
}

#ifdef RESPONSES
#include "responses.h"
#endif

INLINE void moved(struct bpf_sock_ops *s)
{
	volatile struct bpf_sock_ops *v = s;
	void *sk = s->sk;
	struct note *n;
	u64 now, cookie;

	if (!sk)
		return;
	cookie = cookie_of(s);
	n = note_of(sk, cookie);
	if (!n)
		return;
#ifdef RESPONSES
	if (v->op == WRITTEN) {
		written(s, sk, n);
		return;
	}
	if (v->op == ACKNOWLEDGED) {
		acknowledged(sk, n);
		return;
	}
#endif
	if (v->op == TIMED_OUT) {
		n->rtos++;
		return;
	}
	if (n->finished_ns && v->args[1] != CLOSE)
		return;
	now = now_ns();
	/* the first change of state at which nothing is outstanding */
	if (!n->finished_ns && v->snd_nxt == v->snd_una) {
		n->finished_ns = now;
#ifdef IDLE
		{
			struct tcp_sock *tcp = to_tcp_sock(sk);
			if (tcp)
				n->idle_ns = idle_of(tcp, n, now - n->since_ns);
		}
#endif
	}
	if (v->args[1] == CLOSE) {
#ifdef RESPONSES
		broken_off(sk, n, now);
#endif
		ended(s, sk, n, now);
		forget(cookie);
	}
}

SEC("sockops") int traffic(struct bpf_sock_ops *s)
{
	u32 op = ((volatile struct bpf_sock_ops *)s)->op;
	u64 tag, now;
	int chosen;

	if (op == STATE && ((volatile struct bpf_sock_ops *)s)->args[1] == ESTABLISHED)
		return 1; /* a connection that has just been assigned */
	if (op == STATE || op == TIMED_OUT || op == WRITTEN || op == ACKNOWLEDGED) {
		moved(s); /* only what was assigned has a note */
		return 1;
	}
	if (op != PASSIVE_ESTABLISHED && !(op == RWND_INIT && control.asks_requests & 1) &&
	    !(op == NEEDS_ECN && control.asks_requests & 2))
		return 1;
	if (namespace_cookie(s) != control.namespace)
		return 1;
	if (op == PASSIVE_ESTABLISHED) {
		count(PASSIVE);
		established(s);
		return 1;
	}
	chosen = decide(s, &tag, &now);
	if (chosen < 0)
		return 1;
	chosen &= ARMS - 1;
	if (op == RWND_INIT && control.arm[chosen].initrwnd)
		REPLY(s) = control.arm[chosen].initrwnd;
	else if (op == NEEDS_ECN && control.arm[chosen].ecn)
		REPLY(s) = 1;
	return 1;
}

#ifdef IDLE
/* Documentation/bpf/bpf_iterators.rst: what a program gets that walks over the TCP sockets of a network namespace. */
struct walk_meta {
	void *file;
	u64 session, number;
};
struct walk {
	struct walk_meta *meta;
	void *sk;
};

/* Each connection that is still open, as if it had ended now. */
SEC("iter") int still_open(struct walk *w)
{
	struct tcp_sock *tcp;
	struct note *n;
	struct {
		struct response before; /* the last response that has ended, if it took any time */
		struct record now;
	} two = {}, *both = &two;
	struct record *r = &both->now;
	void *sk = w->sk;
	u64 now = now_ns(), began;
	u32 begin;
	int is_open;

	tcp = sk ? to_tcp_sock(sk) : 0;
	if (!tcp)
		return 0;
	n = note_of(sk, cookie_of(sk));
	if (!n)
		return 0;
	fill_response(&both->before, n);
	FILL(r, n, now, tcp, ESTABLISHED, tcp->snd_una, tcp->rtt_min.s[0].v, 0);
	if (!n->finished_ns)
		r->idle_ns = idle_of(tcp, n, now - n->since_ns);
	r->response_ns = 0;
	began = n->began_ns;
	begin = n->begin_seq;
	is_open = n->under_way;
#ifdef RESPONSES
	if (!is_open) {
		began = began_unseen(tcp, n, now);
		begin = n->end_seq;
		is_open = began != 0;
	}
#endif
	if (is_open) {
		r->response_ns = now > began ? now - began : 1;
		r->response_ended_ns = r->lasted_ns;
		r->response_bytes = tcp->snd_una - begin;
		r->response_cut = 1;
		r->responses++;
	}
	write_out(w->meta->file, both, sizeof(*both));
	return 0;
}
#endif

char traffic_license[] SEC("license") = "Dual MIT/GPL";
