/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the congestion controls of this directory share.
 *
 * Every file is compiled twice. For the kernel, as struct_ops programs: the few kernel types below are partial, and the
 * loader moves each access to where the running kernel has the field (CO-RE). Natively, with WT_NATIVE, for the model and the
 * tests: there the same names are plain structs, and struct wt_native carries what maps carry in the kernel.
 *
 * Windows are in packets, times in microseconds.
 */
#ifndef WINDTUNNEL_CC_H
#define WINDTUNNEL_CC_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef short s16;
typedef int s32;
typedef long long s64;

#define WT_INLINE static inline __attribute__((always_inline, unused))

#ifdef WT_NATIVE
#define WT_KERNEL_TYPE
#else
#define WT_KERNEL_TYPE __attribute__((preserve_access_index))
#define SEC(name) __attribute__((section(name), used))
#endif

/* ---- the kernel's types, as far as they are used ---- */

struct sock {
	int wt_unused;
} WT_KERNEL_TYPE;

struct inet_connection_sock {
	u64 icsk_ca_priv[13]; /* 104 bytes for the algorithm */
	u8 icsk_ca_state : 5;
	u8 icsk_retransmits;
} WT_KERNEL_TYPE;

struct tcp_sock {
#ifdef WT_NATIVE
	struct inet_connection_sock inet_conn;
#endif
	u64 tcp_mstamp; /* the time of the latest packet, us */
	u32 snd_cwnd;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 snd_una;
	u32 snd_nxt;
	u32 snd_wnd;
	u32 mss_cache;
	u32 srtt_us; /* times 8 */
	u32 max_packets_out;
	u32 packets_out;
	u32 sacked_out;
	u32 delivered;
	u8 is_cwnd_limited : 1;
} WT_KERNEL_TYPE;

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
} WT_KERNEL_TYPE;

enum { /* enum tcp_ca_state of uapi/linux/tcp.h */
	WT_CA_OPEN = 0,
	WT_CA_DISORDER = 1,
	WT_CA_CWR = 2,
	WT_CA_RECOVERY = 3,
	WT_CA_LOSS = 4,
};

enum { /* enum tcp_ca_event of net/tcp.h */
	WT_EVENT_TX_START = 0,
	WT_EVENT_CWND_RESTART = 1,
	WT_EVENT_COMPLETE_CWR = 2,
	WT_EVENT_LOSS = 3,
};

#define WT_INFINITE_SSTHRESH 0x7fffffff

/* ---- what lies outside of the connection: parameters, the seed, counters ---- */

#define WT_MAX_PARAMS 12

struct wt_shared {
	u64 seed;	   /* written by user space */
	u64 connections;   /* begun */
	u64 guard_hits;	   /* impossible values repaired, see wt_guard() */
	u64 delay_cuts;	   /* back-offs because of delay */
	u64 losses;	   /* loss events reacted to */
	u64 tolerated;	   /* loss events that left the window as it was */
};

/* PARAMS(X) is defined by each file: X(name, default), in the order of the user's table. */
#define WT_PARAM_ENUM(name, value) P_##name,
#define WT_PARAM_VALUE(name, value) value,
#define WT_PARAM_NAME(name, value) #name " "

enum wt_param { PARAMS(WT_PARAM_ENUM) WT_PARAM_COUNT };

#ifdef WT_NATIVE

struct wt_native {
	struct tcp_sock tp;
	struct wt_shared shared;
	u32 params[WT_MAX_PARAMS];
};

#define PARAM(sk, name) (((struct wt_native *)(sk))->params[P_##name])
#define WT_SHARED(sk) (&((struct wt_native *)(sk))->shared)
#define WT_COUNT(sk, field) (WT_SHARED(sk)->field++)

#else

const volatile u32 wt_params[WT_MAX_PARAMS] SEC(".rodata") = { PARAMS(WT_PARAM_VALUE) };
struct wt_shared wt_shared SEC(".bss");

#define PARAM(sk, name) ((void)(sk), wt_params[P_##name])
#define WT_SHARED(sk) ((void)(sk), &wt_shared)
#define WT_COUNT(sk, field) ((void)(sk), (void)__sync_fetch_and_add(&wt_shared.field, 1))

#endif

/* ---- small arithmetic ---- */

WT_INLINE u32 wt_min(u32 a, u32 b)
{
	return a < b ? a : b;
}

WT_INLINE u32 wt_max(u32 a, u32 b)
{
	return a > b ? a : b;
}

/* Whether sequence number a comes before b, modulo 2^32. */
WT_INLINE int wt_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

WT_INLINE u64 wt_div(u64 a, u64 b)
{
	return b ? a / b : 0;
}

/* Marsaglia's xorshift32: the state lives in the connection, so that a run can be repeated. */
WT_INLINE u32 wt_random(u32 *state)
{
	u32 x = *state;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	*state = x;
	return x;
}

/* A connection's own stream: the seed and the number of the connection, stirred (the finaliser of MurmurHash3). */
WT_INLINE u32 wt_random_begin(struct sock *sk)
{
	u64 x = WT_SHARED(sk)->seed + (WT_SHARED(sk)->connections + 1) * 0x9e3779b97f4a7c15ULL;

	WT_COUNT(sk, connections);
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	x ^= x >> 33;
	return (u32)x ? (u32)x : 1;
}

/* ---- the connection ---- */

WT_INLINE struct tcp_sock *wt_tp(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

WT_INLINE void *wt_priv(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

#ifdef WT_NATIVE
#define WT_BITS(object, field) ((object)->field)
#else
/* A bit field by CO-RE: BPF_FIELD_BYTE_OFFSET 0, BYTE_SIZE 1, LSHIFT_U64 4, RSHIFT_U64 5 of linux/bpf.h. */
#define WT_BITS(object, field)                                                                      \
	({                                                                                          \
		const void *wt_at =                                                                 \
			(const char *)(object) + __builtin_preserve_field_info((object)->field, 0); \
		u64 wt_bits = 0;                                                                    \
		switch (__builtin_preserve_field_info((object)->field, 1)) {                        \
		case 1:                                                                             \
			wt_bits = *(const volatile u8 *)wt_at;                                      \
			break;                                                                      \
		case 2:                                                                             \
			wt_bits = *(const volatile u16 *)wt_at;                                     \
			break;                                                                      \
		case 4:                                                                             \
			wt_bits = *(const volatile u32 *)wt_at;                                     \
			break;                                                                      \
		case 8:                                                                             \
			wt_bits = *(const volatile u64 *)wt_at;                                     \
			break;                                                                      \
		}                                                                                   \
		wt_bits <<= __builtin_preserve_field_info((object)->field, 4);                      \
		wt_bits >>= __builtin_preserve_field_info((object)->field, 5);                      \
		(u32) wt_bits;                                                                      \
	})
#endif

WT_INLINE u32 wt_ca_state(struct sock *sk)
{
	return WT_BITS((struct inet_connection_sock *)sk, icsk_ca_state);
}

WT_INLINE int wt_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* Whether the window, and not the program, held the sender back: tcp_is_cwnd_limited() of net/tcp.h. */
WT_INLINE int wt_is_cwnd_limited(struct tcp_sock *tp)
{
	if (WT_BITS(tp, is_cwnd_limited))
		return 1;
	return wt_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

WT_INLINE void wt_set_cwnd(struct tcp_sock *tp, u32 cwnd)
{
	tp->snd_cwnd = wt_max(1, wt_min(cwnd, tp->snd_cwnd_clamp));
}

/* Half of what may be in flight, in whole packets, at least two (RFC 5681, equation 4). */
WT_INLINE u32 wt_half(struct tcp_sock *tp, u32 cwnd)
{
	u32 window = wt_min(cwnd, (u32)wt_div(tp->snd_wnd, tp->mss_cache));

	return wt_max(window / 2, 2);
}

/* Slow start by packets acknowledged, up to ssthresh; returns those left over for congestion avoidance. */
WT_INLINE u32 wt_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 cwnd = wt_min(tp->snd_cwnd + acked, tp->snd_ssthresh);
	u32 used = cwnd - tp->snd_cwnd;

	wt_set_cwnd(tp, cwnd);
	return acked - used;
}

/* Adds `step` packets for each `window` packets acknowledged. */
WT_INLINE void wt_avoid(struct tcp_sock *tp, u32 window, u32 acked, u32 step)
{
	u32 count = tp->snd_cwnd_cnt + acked;

	window = wt_max(window, 1);
	if (count >= window) {
		u32 times = count / window;

		count -= times * window;
		wt_set_cwnd(tp, tp->snd_cwnd + times * step);
	}
	tp->snd_cwnd_cnt = count;
}

/* NewReno's growth (RFC 5681, section 3.1, by packets acknowledged as RFC 3465 has it). */
WT_INLINE void wt_reno_grow(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = wt_tp(sk);

	if (!wt_is_cwnd_limited(tp))
		return;
	if (wt_in_slow_start(tp)) {
		acked = wt_slow_start(tp, acked);
		if (!acked)
			return;
	}
	wt_avoid(tp, tp->snd_cwnd, acked, 1);
}

WT_INLINE u32 wt_undo(struct sock *sk)
{
	return wt_max(wt_tp(sk)->snd_cwnd, wt_tp(sk)->prior_cwnd);
}

/*
 * Some kernels of virtual machines skip a program when it is entered at a bad moment, and take whatever a register holds for
 * its answer: a threshold of billions. Repaired at the next ACK and counted, so that a measurement can be thrown away.
 */
WT_INLINE void wt_guard(struct sock *sk)
{
	struct tcp_sock *tp = wt_tp(sk);
	u32 sane;

	if (tp->snd_ssthresh == WT_INFINITE_SSTHRESH || tp->snd_ssthresh <= 1000000)
		return;
	sane = wt_max(tp->prior_cwnd / 2, 2);
	tp->snd_ssthresh = sane;
	tp->snd_cwnd = wt_min(tp->snd_cwnd, wt_max(sane, 2 * tp->packets_out + 10));
	WT_COUNT(sk, guard_hits);
}

/* ---- RTT samples as FreeBSD's h_ertt(4) takes them ---- */

struct wt_ertt {
	u32 rtt;	 /* latest sample; 0 before the first */
	u32 min;	 /* of the connection, never aged */
	u32 max;	 /* of the connection, never aged */
	u32 round_end;	 /* when this is acknowledged, a round trip is over */
	u32 recover;	 /* congestion recovery after a delay cut lasts until this is acknowledged */
	u8 delayed_acks; /* 0 to 5: rises with ACKs of several segments */
	u8 recovering;	 /* whether `recover` means anything */
	u8 new_round;	 /* a round trip has ended, and nobody has looked at it yet: FreeBSD's ERTT_NEW_MEASUREMENT */
};

WT_INLINE void wt_ertt_begin(struct sock *sk, struct wt_ertt *e)
{
	e->rtt = 0;
	e->min = 0;
	e->max = 0;
	e->round_end = wt_tp(sk)->snd_nxt;
	e->recover = 0;
	e->delayed_acks = 0;
	e->recovering = 0;
	e->new_round = 0;
}

/* Notes the end of a round trip when this ACK is it. */
WT_INLINE void wt_round_ends(struct tcp_sock *tp, struct wt_ertt *e)
{
	if (!e->rtt || wt_before(tp->snd_una, e->round_end))
		return;
	e->round_end = tp->snd_nxt;
	e->new_round = 1;
}

/*
 * Takes what an ACK tells; whether it gave a sample of the RTT. What follows from samples is decided in cong_avoid(), which the
 * kernel doesn't call while it recovers: what was measured meanwhile waits until then. FreeBSD's controls hear of ACKs in
 * recovery, too, and measure anew from each.
 */
WT_INLINE int wt_ertt_acked(struct sock *sk, struct wt_ertt *e, const struct ack_sample *sample)
{
	struct tcp_sock *tp = wt_tp(sk);
	u32 acked = sample->pkts_acked;
	s32 rtt = sample->rtt_us;

	if (e->recovering && !wt_before(tp->snd_una, e->recover))
		e->recovering = 0;
	if (rtt <= 0)
		return 0;
	if (tp->sacked_out == 0) {
		if (acked == 1 && e->delayed_acks) {
			/* Perhaps a delayed ACK: it can only show that the path is shorter than thought. */
			e->delayed_acks--;
			if (e->min && (u32)rtt < e->min)
				e->min = (u32)rtt;
			return 0;
		}
		if (acked > 1 && e->delayed_acks < 5)
			e->delayed_acks++;
	}
	e->rtt = (u32)rtt;
	if (!e->min || e->rtt < e->min)
		e->min = e->rtt;
	if (e->rtt > e->max)
		e->max = e->rtt;
	wt_round_ends(tp, e);
	return 1;
}

/* Whether a round trip has ended since this was last asked. */
WT_INLINE int wt_round_over(struct wt_ertt *e)
{
	int over = e->new_round;

	e->new_round = 0;
	return over;
}

WT_INLINE int wt_in_recovery(struct sock *sk, const struct wt_ertt *e)
{
	return wt_ca_state(sk) >= WT_CA_CWR || e->recovering;
}

/* The back-off of FreeBSD's ECN reaction: window and threshold halved at once, and congestion recovery for one round trip. */
WT_INLINE void wt_delay_cut(struct sock *sk, struct wt_ertt *e, u32 window)
{
	struct tcp_sock *tp = wt_tp(sk);

	tp->snd_ssthresh = window;
	tp->snd_cwnd = window;
	tp->snd_cwnd_cnt = 0;
	e->recover = tp->snd_nxt;
	e->recovering = 1;
	WT_COUNT(sk, delay_cuts);
}

/*
 * Hamilton's back-off probability for a queueing delay, as a share of 2^32: rises from 0 at `least` to `most` at `threshold`
 * and falls again to 0 at the largest delay that was ever seen, so that a flow stops yielding where others fill the queue.
 */
WT_INLINE u64 wt_hamilton(u32 delay, u32 largest, u32 least, u32 threshold, u32 most_ppm)
{
	u64 most = ((u64)most_ppm << 32) / 1000000;

	if (delay <= least)
		return 0;
	if (delay < threshold)
		return most * (delay - least) / (threshold - least);
	if (delay == threshold)
		return most;
	if (delay >= largest)
		return 0;
	return most * (largest - delay) / (largest - threshold);
}

/* ---- operations ---- */

WT_INLINE void wt_no_event(struct sock *sk, u32 event)
{
	(void)sk;
	(void)event;
}

WT_INLINE void wt_no_state(struct sock *sk, u32 state)
{
	(void)sk;
	(void)state;
}

#ifdef WT_NATIVE

struct wt_native_ops {
	const char *params; /* names, each followed by a space */
	u32 size;	    /* of struct wt_native */
	u32 defaults[WT_MAX_PARAMS];
	void (*init)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*cwnd_event)(struct sock *sk, u32 event);
	void (*set_state)(struct sock *sk, u32 state);
	u32 (*undo_cwnd)(struct sock *sk);
};

#define WT_CONGESTION_CONTROL(name, init_, ssthresh_, avoid_, acked_, event_, state_) \
	extern const struct wt_native_ops wt_native_##name;                           \
	const struct wt_native_ops wt_native_##name = {                               \
		.params = "" PARAMS(WT_PARAM_NAME),                                   \
		.size = sizeof(struct wt_native),                                     \
		.defaults = { PARAMS(WT_PARAM_VALUE) },                               \
		.init = init_,                                                        \
		.ssthresh = ssthresh_,                                                \
		.cong_avoid = avoid_,                                                 \
		.pkts_acked = acked_,                                                 \
		.cwnd_event = event_,                                                 \
		.set_state = state_,                                                  \
		.undo_cwnd = wt_undo,                                                 \
	};

#else

/* The section of a program names the operation; the loader finds its place in the kernel's struct tcp_congestion_ops. */
#define WT_CONGESTION_CONTROL(name, init_, ssthresh_, avoid_, acked_, event_, state_) \
	SEC("struct_ops/init") int wt_init(u64 *ctx)                                  \
	{                                                                             \
		init_((struct sock *)ctx[0]);                                         \
		return 0;                                                             \
	}                                                                             \
	SEC("struct_ops/ssthresh") u32 wt_ssthresh(u64 *ctx)                          \
	{                                                                             \
		return ssthresh_((struct sock *)ctx[0]);                              \
	}                                                                             \
	SEC("struct_ops/cong_avoid") int wt_cong_avoid(u64 *ctx)                      \
	{                                                                             \
		avoid_((struct sock *)ctx[0], (u32)ctx[1], (u32)ctx[2]);              \
		return 0;                                                             \
	}                                                                             \
	SEC("struct_ops/pkts_acked") int wt_pkts_acked(u64 *ctx)                      \
	{                                                                             \
		acked_((struct sock *)ctx[0], (const struct ack_sample *)ctx[1]);     \
		return 0;                                                             \
	}                                                                             \
	SEC("struct_ops/cwnd_event") int wt_cwnd_event(u64 *ctx)                      \
	{                                                                             \
		event_((struct sock *)ctx[0], (u32)ctx[1]);                           \
		return 0;                                                             \
	}                                                                             \
	SEC("struct_ops/set_state") int wt_set_state(u64 *ctx)                        \
	{                                                                             \
		state_((struct sock *)ctx[0], (u8)ctx[1]);                            \
		return 0;                                                             \
	}                                                                             \
	SEC("struct_ops/undo_cwnd") u32 wt_undo_cwnd(u64 *ctx)                        \
	{                                                                             \
		return wt_undo((struct sock *)ctx[0]);                                \
	}                                                                             \
	char wt_license[] SEC("license") = "Dual MIT/GPL";

#endif

#endif
