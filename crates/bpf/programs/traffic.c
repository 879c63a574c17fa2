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
 * open: that takes CAP_PERFMON, and the kernel's own struct. Where either is missing, the program without it is loaded.
 *
 * The layout of struct control and of struct record is repeated in src/traffic/layout.rs.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline, unused))
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NTOHL(x) __builtin_bswap32(x)
#define NTOHS(x) __builtin_bswap16(x)
#else
#define NTOHL(x) (x)
#define NTOHS(x) (x)
#endif

/* linux/bpf.h, whose layout is a promise of the kernel */
struct bpf_sock_ops {
	u32 op;
	u32 args[4];
	u32 family, remote_ip4, local_ip4, remote_ip6[4], local_ip6[4], remote_port, local_port, is_fullsock;
	u32 snd_cwnd, srtt_us, cb_flags, state, rtt_min, snd_ssthresh, rcv_nxt, snd_nxt, snd_una, mss_cache, ecn_flags;
	u32 rate_delivered, rate_interval_us, packets_out, retrans_out, total_retrans, segs_in, data_segs_in, segs_out;
	u32 data_segs_out, lost_out, sacked_out, sk_txhash;
	u64 bytes_received, bytes_acked;
	void *sk;
};
enum { RWND_INIT = 2, PASSIVE_ESTABLISHED = 5, NEEDS_ECN = 6, TIMED_OUT = 8, STATE = 10 };
enum { RTO_FLAG = 1, STATE_FLAG = 4 };
enum { ESTABLISHED = 1, CLOSE = 7 };
#define REPLY(s) (*(volatile u32 *)&(s)->args[0])

static void *(*storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static u64 (*now_ns)(void) = (void *)5;
static long (*set_option)(void *s, int level, int name, void *value, int length) = (void *)49;
static long (*get_option)(void *s, int level, int name, void *value, int length) = (void *)57;
static long (*set_flags)(void *s, int flags) = (void *)59;
static u64 (*namespace_cookie)(void *s) = (void *)122;
static void *(*reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*submit)(void *record, u64 flags) = (void *)132;
#ifdef IDLE
static void *(*to_tcp_sock)(void *sk) = (void *)137;
static u64 (*jiffies64)(void) = (void *)118;

/* include/linux/tcp.h: moved to where the running kernel has them. The type was two bits of a byte before Linux 6.18. */
struct tcp_sock {
	u8 chrono_type;
	u32 chrono_start;
	u32 chrono_stat[3];
} __attribute__((preserve_access_index));
#endif

#define ARMS 8
#define PORTS 8

struct arm {
	u32 initcwnd, cwnd_clamp, rto_min_us, delack_max_us, notsent_lowat, window_clamp, initrwnd, ecn;
	u64 pacing; /* bytes a second */
	char cc[16];
	u64 spare;
};

/* Why a connection isn't in the experiment, and how many are. */
enum {
	PASSIVE, /* all of the namespace, before any other question */
	OTHER_PORT,
	PRIVATE_ADDRESS,
	OWN_CC, /* the socket has a congestion control of its own */
	PAUSED, /* nobody beats the heart */
	OUTSIDE, /* drawn into no arm */
	NO_NOTE, /* no memory */
	RECORDED,
	COUNTS,
};

struct control {
	u64 heartbeat_ns, patience_ns; /* 0 patience: paused */
	u64 namespace;
	u64 key[2], tag_key[2];
	u64 epoch;
	u64 by_connection;
	u64 arms;
	u64 skip_private, skip_loopback;
	u64 skip_own_cc;
	u64 ports;
	u64 port[PORTS];
	u64 below[ARMS]; /* of 2^32: a draw below it, and not below the one before, is of this arm */
	char usual_cc[16];
	u64 counts[16];
	u64 assigned[ARMS];
	u64 lost[ARMS];
	struct arm arm[ARMS];
};
struct control control SEC(".bss");

struct note {
	u64 tag;
	u64 epoch;
	u64 since_ns;
	u64 finished_ns;
	u64 idle_ns;
	u32 arm;
	u32 refused; /* options that the kernel refused or made something else of, a bit each */
	u32 rtos;
	u32 cwnd; /* read back */
	u64 since_jiffies;
	char cc[16];
};

struct record {
	u64 tag;
	u64 epoch;
	u64 since_ns;
	u64 lasted_ns; /* to its end */
	u64 finished_ns; /* until all was acknowledged */
	u64 idle_ns; /* of that: nothing was outstanding */
	u64 bytes_acked, bytes_received;
	u32 arm;
	u32 refused;
	u32 rtos;
	u32 initcwnd;
	u32 last_state;
	u32 unacked;
	u32 srtt_us, min_rtt_us;
	u32 retransmitted, segments_out, data_segments_out, segments_in;
	u32 cwnd, mss;
	u32 changed_cc;
	u32 ecn;
};

/* The loader makes the maps and finds them by these names. */
struct { int unused; } notes SEC(".maps"), records SEC(".maps");

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

INLINE void count(int which)
{
	__sync_fetch_and_add(&control.counts[which], 1);
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

/* The arm, or less than 0: which count of those that are left alone. */
INLINE int decide(struct bpf_sock_ops *s, u64 *tag)
{
	volatile struct bpf_sock_ops *v = s; /* one load for each field, or else the verifier refuses */
	u64 port = v->local_port, prefix, rest, draw, high, low;
	u32 family = v->family, r4 = v->remote_ip4;
	u32 r0 = v->remote_ip6[0], r1 = v->remote_ip6[1], r2 = v->remote_ip6[2], r3 = v->remote_ip6[3], rp = v->remote_port;
	u32 i, named = 0;

#pragma unroll
	for (i = 0; i < PORTS; i++)
		if (i < control.ports && control.port[i] == port)
			named = 1;
	if (!named)
		return -OTHER_PORT;
	high = (u64)NTOHL(r0) << 32 | NTOHL(r1);
	low = (u64)NTOHL(r2) << 32 | NTOHL(r3);
	if (family == 2 || (!high && low >> 32 == 0xffff)) {
		u32 address = family == 2 ? NTOHL(r4) : (u32)low;
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
	if (now_ns() > control.heartbeat_ns + control.patience_ns)
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

/* What the kernel has made of it is read back; times are whole jiffies, of 10 ms at most, and older kernels don't tell them. */
INLINE int set(struct bpf_sock_ops *s, int level, int name, u32 value, u32 bit)
{
	u32 now = value, slack = name == 1003 || name == 1004 ? 20000 : 0;

	if (set_option(s, level, name, &value, sizeof(value)))
		return 1 << bit;
	if (name == 1001 || name == 1002 || get_option(s, level, name, &now, sizeof(now)))
		return 0;
	return now > value + slack || value > now + slack ? 1 << bit : 0;
}

INLINE void established(struct bpf_sock_ops *s)
{
	u64 tag = 0, *words, *usual = (u64 *)control.usual_cc;
	int chosen = decide(s, &tag), refused = 0;
	void *sk = s->sk; /* loaded once, tested once */
	struct arm *arm;
	struct note *n;
	char cc[16] = {};

	if (chosen < 0 || !sk) {
		count(chosen < 0 ? -chosen : NO_NOTE);
		return;
	}
	get_option(s, 6, 13, cc, sizeof(cc));
	words = (u64 *)cc;
	if (control.skip_own_cc && (words[0] != usual[0] || words[1] != usual[1])) {
		count(OWN_CC);
		return;
	}
	n = storage_get(&notes, sk, 0, 1);
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
	if (arm->pacing) {
		u32 rate = arm->pacing > 0xfffffffeULL ? 0xfffffffe : arm->pacing;
		refused |= set(s, 1, 47, rate, 9);
	}
	if (arm->cc[0]) {
		u64 wanted[2] = {((u64 *)arm->cc)[0], ((u64 *)arm->cc)[1]};
		if (set_option(s, 6, 13, wanted, sizeof(wanted)))
			refused |= 1;
	}
	get_option(s, 6, 13, n->cc, sizeof(n->cc));
	n->tag = tag;
	n->epoch = control.epoch;
	n->arm = chosen;
	n->refused = refused;
	n->rtos = 0;
	n->finished_ns = 0;
	n->idle_ns = 0;
#ifdef IDLE
	n->since_jiffies = jiffies64();
#endif
	n->cwnd = ((volatile struct bpf_sock_ops *)s)->snd_cwnd;
	n->since_ns = now_ns();
	__sync_fetch_and_add(&control.assigned[chosen], 1);
	set_flags(s, RTO_FLAG | STATE_FLAG);
}

INLINE void ended(struct bpf_sock_ops *s, struct note *n, u64 now)
{
	volatile struct bpf_sock_ops *v = s;
	struct record *r = reserve(&records, sizeof(*r), 0);
	u64 cc[2] = {};

	if (!r) {
		__sync_fetch_and_add(&control.lost[n->arm & (ARMS - 1)], 1); /* the ring is full */
		return;
	}
	r->tag = n->tag;
	r->epoch = n->epoch;
	r->since_ns = n->since_ns;
	r->lasted_ns = now - n->since_ns;
	r->finished_ns = n->finished_ns ? n->finished_ns - n->since_ns : 0;
	r->idle_ns = n->idle_ns;
	r->bytes_acked = v->bytes_acked;
	r->bytes_received = v->bytes_received;
	r->arm = n->arm;
	r->refused = n->refused;
	r->rtos = n->rtos;
	r->initcwnd = n->cwnd;
	r->last_state = v->args[0];
	r->unacked = v->snd_nxt - v->snd_una;
	r->srtt_us = v->srtt_us >> 3;
	r->min_rtt_us = v->rtt_min;
	r->retransmitted = v->total_retrans;
	r->segments_out = v->segs_out;
	r->data_segments_out = v->data_segs_out;
	r->segments_in = v->segs_in;
	r->cwnd = v->snd_cwnd;
	r->mss = v->mss_cache;
	get_option(s, 6, 13, cc, sizeof(cc));
	r->changed_cc = cc[0] != ((u64 *)n->cc)[0] || cc[1] != ((u64 *)n->cc)[1];
	r->ecn = v->ecn_flags & 1;
	submit(r, 1); /* the reader looks by itself: no wake-up for each connection */
	count(RECORDED);
}

#ifdef IDLE
/* The part of so long in which nothing was outstanding: the kernel counts the rest in jiffies (tcp_chrono_start() and _stop() in
 * net/ipv4/tcp_output.c). */
INLINE u64 idle_of(void *sk, struct note *n, u64 lasted_ns)
{
	struct tcp_sock *tcp = to_tcp_sock(sk);
	u64 jiffies = jiffies64(), all = jiffies - n->since_jiffies, busy;

	if (!tcp || !all)
		return 0;
	busy = (u64)tcp->chrono_stat[0] + tcp->chrono_stat[1] + tcp->chrono_stat[2];
	if (tcp->chrono_type & 3)
		busy += (u32)((u32)jiffies - tcp->chrono_start);
	return busy < all ? lasted_ns / all * (all - busy) : 0;
}
#endif

INLINE void moved(struct bpf_sock_ops *s)
{
	volatile struct bpf_sock_ops *v = s;
	void *sk = s->sk;
	struct note *n;
	u64 now;

	if (!sk)
		return;
	n = storage_get(&notes, sk, 0, 0);
	if (!n)
		return;
	now = now_ns();
	if (v->op == TIMED_OUT) {
		n->rtos++;
		return;
	}
	/* the first change of state at which nothing is outstanding; the state of a new connection changes once more */
	if (!n->finished_ns && v->args[1] != ESTABLISHED && v->snd_nxt == v->snd_una) {
		n->finished_ns = now;
#ifdef IDLE
		n->idle_ns = idle_of(sk, n, now - n->since_ns);
#endif
	}
	if (v->args[1] == CLOSE)
		ended(s, n, now);
}

SEC("sockops") int traffic(struct bpf_sock_ops *s)
{
	u32 op = ((volatile struct bpf_sock_ops *)s)->op;
	u64 tag;
	int chosen;

	if (op != RWND_INIT && op != PASSIVE_ESTABLISHED && op != NEEDS_ECN && op != TIMED_OUT && op != STATE)
		return 1;
	if (namespace_cookie(s) != control.namespace)
		return 1;
	if (op == PASSIVE_ESTABLISHED) {
		count(PASSIVE);
		established(s);
	} else if (op == TIMED_OUT || op == STATE) {
		moved(s);
	} else {
		chosen = decide(s, &tag);
		if (chosen < 0)
			return 1;
		chosen &= ARMS - 1;
		if (op == RWND_INIT && control.arm[chosen].initrwnd)
			REPLY(s) = control.arm[chosen].initrwnd;
		else if (op == NEEDS_ECN && control.arm[chosen].ecn)
			REPLY(s) = 1;
	}
	return 1;
}

char traffic_license[] SEC("license") = "Dual MIT/GPL";
