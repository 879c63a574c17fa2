/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Vegas: once per round trip compares the rate that an empty path would give with the real one, and keeps between alpha and
 * beta packets in the queue. Slow start grows every other round trip. Losses as NewReno.
 * Brakmo, Peterson: IEEE JSAC 13(8), 1995; cc_vegas(4) of FreeBSD, whose alpha and beta these are.
 */
#define PARAMS(X) X(alpha, 1) X(beta, 3)
#include "windtunnel_cc.h"

struct vegas {
	struct wt_ertt ertt;
	u32 marked_cwnd;      /* the window when this round trip began */
	u32 marked_delivered; /* what had been delivered before the ACK that began it */
	u8 grow;	      /* whether slow start grows in this round trip */
};

WT_INLINE void vegas_init(struct sock *sk)
{
	struct vegas *vegas = wt_priv(sk);

	wt_ertt_begin(sk, &vegas->ertt);
	vegas->marked_cwnd = wt_tp(sk)->snd_cwnd;
	vegas->marked_delivered = wt_tp(sk)->delivered;
	vegas->grow = 1;
	WT_COUNT(sk, connections);
}

/* Packets in the queue: the window less what the path alone would have held at this rate. */
WT_INLINE u32 vegas_queued(struct tcp_sock *tp, const struct vegas *vegas)
{
	/* Both ends of the round trip are ACKs of several packets, so it may seem to deliver a few more than the window. */
	u32 delivered = wt_min(tp->delivered - vegas->marked_delivered, vegas->marked_cwnd);
	u64 window = (u64)vegas->marked_cwnd * vegas->ertt.rtt;
	u64 moved = (u64)delivered * vegas->ertt.min;

	return window > moved ? (u32)wt_div(window - moved, vegas->ertt.rtt) : 0;
}

WT_INLINE void vegas_round(struct sock *sk, struct vegas *vegas, u32 acked)
{
	struct tcp_sock *tp = wt_tp(sk);
	u32 queued = vegas_queued(tp, vegas);

	if (queued < PARAM(sk, alpha)) {
		if (wt_in_slow_start(tp)) {
			vegas->grow = !vegas->grow;
		} else {
			vegas->grow = 0;
			if (!wt_in_recovery(sk, &vegas->ertt))
				wt_set_cwnd(tp, tp->snd_cwnd + 1);
		}
	} else if (queued > PARAM(sk, beta)) {
		vegas->grow = 0;
		if (!wt_in_recovery(sk, &vegas->ertt)) {
			tp->snd_cwnd = wt_max(tp->snd_cwnd - 1, 2);
			tp->snd_ssthresh = wt_min(tp->snd_ssthresh, tp->snd_cwnd);
			WT_COUNT(sk, delay_cuts);
		}
	}
	vegas->marked_cwnd = tp->snd_cwnd;
	vegas->marked_delivered = tp->delivered - acked;
}

WT_INLINE void vegas_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct vegas *vegas = wt_priv(sk);

	wt_guard(sk);
	wt_ertt_acked(sk, &vegas->ertt, sample);
}

WT_INLINE void vegas_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct vegas *vegas = wt_priv(sk);

	(void)ack;
	if (wt_round_over(&vegas->ertt))
		vegas_round(sk, vegas, acked);
	if (vegas->grow)
		wt_reno_grow(sk, acked);
}

WT_INLINE u32 vegas_ssthresh(struct sock *sk)
{
	WT_COUNT(sk, losses);
	return wt_half(wt_tp(sk), wt_tp(sk)->snd_cwnd);
}

WT_INLINE void vegas_state(struct sock *sk, u32 state)
{
	struct vegas *vegas = wt_priv(sk);

	/* What ends below the threshold goes on in slow start. */
	if (state == WT_CA_OPEN)
		vegas->grow = wt_in_slow_start(wt_tp(sk));
	else if (state == WT_CA_LOSS)
		vegas->grow = 1;
}

WT_CONGESTION_CONTROL(vegas, vegas_init, vegas_ssthresh, vegas_cong_avoid, vegas_acked, wt_no_event, vegas_state)
