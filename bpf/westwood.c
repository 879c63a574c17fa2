/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Westwood+: NewReno's growth; after a loss the window is what the measured rate fills in the shortest RTT.
 * Grieco, Mascolo: ACM CCR 34(2), 2004; the filter and its interval of at least 50 ms are those of Linux.
 */
#define PARAMS(X) X(interval_us, 50000)
#include "windtunnel_cc.h"

#define RATE_SHIFT 24 /* rates are packets per microsecond, times 2^24 */

struct westwood {
	u64 since_us; /* when the interval began */
	u64 first;    /* the first filter */
	u64 rate;     /* the second one behind it */
	u32 delivered;
	u32 rtt;
	u32 min_rtt;
	u8 started;
	u8 fresh_min; /* whether min_rtt starts anew with the next sample */
};

WT_INLINE void westwood_init(struct sock *sk)
{
	struct westwood *w = wt_priv(sk);

	w->since_us = wt_tp(sk)->tcp_mstamp;
	w->first = 0;
	w->rate = 0;
	w->delivered = wt_tp(sk)->delivered;
	w->rtt = 0;
	w->min_rtt = 0;
	w->started = 0;
	w->fresh_min = 0;
	WT_COUNT(sk, connections);
}

WT_INLINE void westwood_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct westwood *w = wt_priv(sk);
	struct tcp_sock *tp = wt_tp(sk);
	u64 now = tp->tcp_mstamp, passed, rate;

	wt_guard(sk);
	if (sample->rtt_us > 0) {
		w->rtt = (u32)sample->rtt_us;
		if (!w->min_rtt || w->fresh_min || w->rtt < w->min_rtt)
			w->min_rtt = w->rtt;
		w->fresh_min = 0;
	}
	passed = now - w->since_us;
	if (!w->rtt || passed < wt_max(w->rtt, PARAM(sk, interval_us)))
		return;
	rate = wt_div((u64)(tp->delivered - w->delivered) << RATE_SHIFT, passed);
	if (w->started) {
		w->first = (7 * w->first + rate) >> 3;
		w->rate = (7 * w->rate + w->first) >> 3;
	} else {
		/* The first interval also holds the handshake's round trip: a start, not a measurement. */
		w->first = rate;
		w->rate = rate;
		w->started = 1;
	}
	w->since_us = now;
	w->delivered = tp->delivered;
}

/* What the measured rate fills in the shortest RTT. */
WT_INLINE u32 westwood_window(const struct westwood *w)
{
	return wt_max((u32)((w->rate * w->min_rtt) >> RATE_SHIFT), 2);
}

WT_INLINE void westwood_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	wt_reno_grow(sk, acked);
}

WT_INLINE u32 westwood_ssthresh(struct sock *sk)
{
	WT_COUNT(sk, losses);
	return wt_half(wt_tp(sk), wt_tp(sk)->snd_cwnd);
}

WT_INLINE void westwood_event(struct sock *sk, u32 event)
{
	struct westwood *w = wt_priv(sk);
	struct tcp_sock *tp = wt_tp(sk);

	if (event == WT_EVENT_COMPLETE_CWR) {
		tp->snd_ssthresh = westwood_window(w);
		tp->snd_cwnd = tp->snd_ssthresh;
	} else if (event == WT_EVENT_LOSS) {
		tp->snd_ssthresh = westwood_window(w);
		w->fresh_min = 1;
	}
}

WT_CONGESTION_CONTROL(westwood, westwood_init, westwood_ssthresh, westwood_cong_avoid, westwood_acked, westwood_event,
		      wt_no_state)
