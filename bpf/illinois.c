/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Illinois: losses say when to back off, the queueing delay says how fast to grow and how far to back off.
 * Liu, Basar, Srikant: TCP-Illinois, Performance Evaluation 65, 2008; the constants are those of Linux.
 */
#define PARAMS(X) X(least_window, 15) X(theta, 5)
#include "windtunnel_cc.h"

#define ALPHA_SHIFT 7 /* fixed point of alpha */
#define ALPHA_ONE (1u << ALPHA_SHIFT)
#define ALPHA_LEAST (3 * ALPHA_ONE / 10)
#define ALPHA_MOST (10 * ALPHA_ONE)
#define BETA_SHIFT 6 /* fixed point of beta */
#define BETA_LEAST (1u << (BETA_SHIFT - 3))
#define BETA_MOST (1u << (BETA_SHIFT - 1))

struct illinois {
	u64 sum_rtt; /* of this round trip */
	u32 count;
	u32 base_rtt;
	u32 max_rtt;
	u32 round_end;
	u32 alpha;
	u32 beta;
	u8 above; /* whether the queue has been long since alpha was largest */
	u8 low;	  /* round trips with a short queue since then */
};

WT_INLINE void illinois_round(struct sock *sk, struct illinois *ca)
{
	ca->round_end = wt_tp(sk)->snd_nxt;
	ca->sum_rtt = 0;
	ca->count = 0;
}

WT_INLINE void illinois_init(struct sock *sk)
{
	struct illinois *ca = wt_priv(sk);

	ca->base_rtt = 0xffffffff;
	ca->max_rtt = 0;
	ca->alpha = ALPHA_MOST;
	ca->beta = BETA_MOST;
	ca->above = 0;
	ca->low = 0;
	illinois_round(sk, ca);
	WT_COUNT(sk, connections);
}

WT_INLINE void illinois_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct illinois *ca = wt_priv(sk);
	u32 rtt = (u32)sample->rtt_us;

	wt_guard(sk);
	if (sample->rtt_us <= 0)
		return;
	ca->base_rtt = wt_min(ca->base_rtt, rtt);
	ca->max_rtt = wt_max(ca->max_rtt, rtt);
	ca->sum_rtt += rtt;
	ca->count++;
}

/* The growth: largest while the queue is short, and along a hyperbola down to 0.3 packets at the longest queue. */
WT_INLINE u32 illinois_alpha(struct sock *sk, struct illinois *ca, u32 delay, u32 longest)
{
	u32 bound = longest / 100;

	if (delay <= bound) {
		if (!ca->above)
			return ALPHA_MOST;
		if (++ca->low < PARAM(sk, theta))
			return ca->alpha;
		ca->low = 0;
		ca->above = 0;
		return ALPHA_MOST;
	}
	ca->above = 1;
	longest -= bound;
	delay -= bound;
	return (u32)wt_div((u64)longest * ALPHA_MOST,
			   longest + (u64)delay * (ALPHA_MOST - ALPHA_LEAST) / ALPHA_LEAST);
}

/* The back-off: 1/8 up to a tenth of the longest queue, 1/2 from eight tenths on, linear between. */
WT_INLINE u32 illinois_beta(u32 delay, u32 longest)
{
	u32 low = longest / 10;
	u32 high = (u32)((u64)longest * 8 / 10);

	if (delay <= low)
		return BETA_LEAST;
	if (delay >= high || high <= low)
		return BETA_MOST;
	return BETA_LEAST + (u32)((u64)(BETA_MOST - BETA_LEAST) * (delay - low) / (high - low));
}

WT_INLINE void illinois_update(struct sock *sk, struct illinois *ca)
{
	if (wt_tp(sk)->snd_cwnd < PARAM(sk, least_window)) {
		ca->alpha = ALPHA_ONE;
		ca->beta = BETA_MOST;
	} else if (ca->count) {
		u32 delay = (u32)wt_div(ca->sum_rtt, ca->count) - ca->base_rtt;
		u32 longest = ca->max_rtt - ca->base_rtt;

		ca->alpha = illinois_alpha(sk, ca, delay, longest);
		ca->beta = illinois_beta(delay, longest);
	}
	illinois_round(sk, ca);
}

WT_INLINE void illinois_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct illinois *ca = wt_priv(sk);
	struct tcp_sock *tp = wt_tp(sk);
	u32 due;

	if (!wt_before(ack, ca->round_end))
		illinois_update(sk, ca);
	if (!wt_is_cwnd_limited(tp))
		return;
	if (wt_in_slow_start(tp)) {
		acked = wt_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tp->snd_cwnd_cnt += acked;
	due = (u32)(((u64)tp->snd_cwnd_cnt * ca->alpha) >> ALPHA_SHIFT);
	if (due >= tp->snd_cwnd) {
		wt_set_cwnd(tp, tp->snd_cwnd + (u32)wt_div(due, tp->snd_cwnd));
		tp->snd_cwnd_cnt = 0;
	}
}

WT_INLINE u32 illinois_ssthresh(struct sock *sk)
{
	struct illinois *ca = wt_priv(sk);
	u32 cwnd = wt_tp(sk)->snd_cwnd;

	WT_COUNT(sk, losses);
	return wt_max(cwnd - (u32)(((u64)cwnd * ca->beta) >> BETA_SHIFT), 2);
}

WT_INLINE void illinois_state(struct sock *sk, u32 state)
{
	struct illinois *ca = wt_priv(sk);

	if (state != WT_CA_LOSS)
		return;
	ca->alpha = ALPHA_ONE;
	ca->beta = BETA_MOST;
	ca->low = 0;
	ca->above = 0;
	illinois_round(sk, ca);
}

WT_CONGESTION_CONTROL(illinois, illinois_init, illinois_ssthresh, illinois_cong_avoid, illinois_acked, wt_no_event,
		      illinois_state)
