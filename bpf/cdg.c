/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * CDG, the CAIA delay gradient: backs off with a probability that grows with the growth of the RTT from one round trip to the
 * next, tells losses of a full queue from others, and stops backing off when that doesn't help.
 * Hayes, Armitage: Revisiting TCP congestion control using delay gradients, Networking 2011; cc_cdg(4) of FreeBSD.
 */
#define PARAMS(X)                                                                                               \
	X(backoff_scale_us, 3000) X(beta_delay_ppm, 700000) X(beta_loss_ppm, 500000) X(compete_after, 5)        \
	X(hold_backoff, 5) X(alpha_inc, 0)
#include "windtunnel_cc.h"

enum { /* the order matters: a loss counts as congestion from CDG_FULL on */
	CDG_EMPTY = 1,
	CDG_RISING = 2,
	CDG_FALLING = 3,
	CDG_FULL = 4,
	CDG_UNKNOWN = 9999,
};

/* Gradients are kept in units of 8 us, which 16 bits hold up to a quarter of a second. */
#define CDG_UNIT_SHIFT 3

struct cdg_window { /* the last eight gradients, the newest first; their sum */
	s16 g0, g1, g2, g3, g4, g5, g6, g7;
	s32 sum;
};

struct cdg {
	struct cdg_window lows; /* of the smallest RTT of a round trip */
	struct cdg_window highs; /* of the largest */
	u32 round_min, round_max;
	u32 last_min, last_max; /* of the previous round trip; last_max 0: don't compare */
	u32 round_end;
	u32 recover;
	u32 random;
	u32 shadow;
	u16 state;
	u16 rounds;	/* towards the next step of alpha_inc */
	u16 step;	/* the growth with alpha_inc, packets per round trip */
	u8 consecutive; /* congestion signals without effect */
	u8 delayed_acks;
	u8 recovering;
	u8 new_round;
};

_Static_assert(sizeof(struct cdg) <= 104, "the kernel keeps 104 bytes per connection");

WT_INLINE void cdg_push(struct cdg_window *w, s32 gradient)
{
	gradient >>= CDG_UNIT_SHIFT;
	gradient = gradient > 32767 ? 32767 : gradient < -32767 ? -32767 : gradient;
	w->sum += gradient - w->g7;
	w->g7 = w->g6;
	w->g6 = w->g5;
	w->g5 = w->g4;
	w->g4 = w->g3;
	w->g3 = w->g2;
	w->g2 = w->g1;
	w->g1 = w->g0;
	w->g0 = (s16)gradient;
}

/* The average of eight, us; only asked for when it is positive. */
WT_INLINE u32 cdg_average(const struct cdg_window *w)
{
	return (u32)w->sum;
}

/* 2^16 * exp(-x), x in 2^-16: two to the power of -x/ln 2, whose fraction goes through the series of its exponential. */
WT_INLINE u32 cdg_exp(u64 x)
{
	u64 y = (x * 94548) >> 16;
	u64 f = y & 0xffff, f2 = (f * f) >> 16, f3 = (f2 * f) >> 16, f4 = (f3 * f) >> 16, f5 = (f4 * f) >> 16;
	u64 more = 65536 + ((15744 * f2 + 630 * f4) >> 16);
	u64 less = (45426 * f + 3638 * f3 + 87 * f5) >> 16;
	u64 whole = y >> 16;

	return whole > 16 ? 0 : (u32)((more - less) >> whole);
}

WT_INLINE int cdg_draw(struct sock *sk, struct cdg *cdg, u32 gradient_us)
{
	u32 scale = wt_max(PARAM(sk, backoff_scale_us), 1);
	u64 chance;

	if (gradient_us > 5 * (u64)scale)
		return 1;
	chance = (u64)(65536 - cdg_exp(((u64)gradient_us << 16) / scale)) << 16;
	return wt_random(&cdg->random) < chance;
}

WT_INLINE void cdg_init(struct sock *sk)
{
	struct cdg *cdg = wt_priv(sk);

	__builtin_memset(cdg, 0, sizeof(*cdg));
	cdg->round_min = 0xffffffff;
	cdg->round_end = wt_tp(sk)->snd_nxt;
	cdg->random = wt_random_begin(sk);
	cdg->shadow = wt_tp(sk)->snd_cwnd;
	cdg->state = CDG_UNKNOWN;
}

/* Compares this round trip with the previous one; whether that is a sign of congestion. */
WT_INLINE int cdg_compare(struct sock *sk, struct cdg *cdg)
{
	int slow_start = wt_in_slow_start(wt_tp(sk));
	s32 high, low;
	int congestion = 0;

	if (!cdg->last_max)
		return 0;
	high = (s32)(cdg->round_max - cdg->last_max);
	low = (s32)(cdg->round_min - cdg->last_min);
	cdg_push(&cdg->highs, high);
	cdg_push(&cdg->lows, low);
	if (slow_start && low > 0)
		congestion = cdg_draw(sk, cdg, (u32)low);
	else if (cdg->lows.sum > 0)
		congestion = cdg_draw(sk, cdg, cdg_average(&cdg->lows));
	else if (slow_start && high > 0)
		congestion = cdg_draw(sk, cdg, (u32)high);
	else if (cdg->highs.sum > 0)
		congestion = cdg_draw(sk, cdg, cdg_average(&cdg->highs));
	if (cdg->lows.sum > 0 && cdg->highs.sum <= 0) {
		cdg->state = CDG_FULL;
	} else if (cdg->lows.sum >= 0 && cdg->highs.sum < 0) {
		cdg->state = CDG_EMPTY;
		cdg->shadow = 0;
	} else if (cdg->lows.sum > 0 && cdg->highs.sum > 0) {
		cdg->state = CDG_RISING;
	} else if (cdg->lows.sum < 0 && cdg->highs.sum < 0) {
		cdg->state = CDG_FALLING;
	}
	if (cdg->lows.sum < 0 || cdg->highs.sum < 0)
		cdg->consecutive = 0;
	return congestion;
}

/* Backs off, unless backing off has had no effect for so long that others must be filling the queue. */
WT_INLINE void cdg_congestion(struct sock *sk, struct cdg *cdg)
{
	struct tcp_sock *tp = wt_tp(sk);
	u32 after = PARAM(sk, compete_after);

	cdg->consecutive++;
	if (wt_ca_state(sk) >= WT_CA_CWR || cdg->recovering)
		return;
	if (cdg->consecutive <= after) {
		u32 window = wt_min(tp->snd_cwnd, (u32)wt_div(tp->snd_wnd, tp->mss_cache));

		window = wt_max((u32)((u64)window * PARAM(sk, beta_delay_ppm) / 1000000), 2);
		tp->snd_ssthresh = window;
		tp->snd_cwnd = window;
		tp->snd_cwnd_cnt = 0;
		cdg->rounds = 0;
		cdg->step = 0;
		cdg->recover = tp->snd_nxt;
		cdg->recovering = 1;
		WT_COUNT(sk, delay_cuts);
	} else if (cdg->consecutive >= after + PARAM(sk, hold_backoff)) {
		cdg->consecutive = 0;
	}
	/* The effect shows only in the round trip after the next. */
	cdg->last_max = 0;
	cdg->shadow = wt_max(tp->snd_cwnd, cdg->shadow);
}

/* The delayed-ACK filter and the rounds of wt_ertt_acked(), without its extremes of the whole connection. */
WT_INLINE void cdg_sample(struct sock *sk, struct cdg *cdg, const struct ack_sample *sample)
{
	struct tcp_sock *tp = wt_tp(sk);
	s32 rtt = sample->rtt_us;
	u32 acked = sample->pkts_acked;

	if (cdg->recovering && !wt_before(tp->snd_una, cdg->recover))
		cdg->recovering = 0;
	if (rtt <= 0)
		return;
	if (tp->sacked_out == 0) {
		if (acked == 1 && cdg->delayed_acks) {
			cdg->delayed_acks--;
			if (cdg->round_min != 0xffffffff && (u32)rtt < cdg->round_min)
				cdg->round_min = (u32)rtt;
			return;
		}
		if (acked > 1 && cdg->delayed_acks < 5)
			cdg->delayed_acks++;
	}
	cdg->round_min = wt_min(cdg->round_min, (u32)rtt);
	cdg->round_max = wt_max(cdg->round_max, (u32)rtt);
	if (!wt_before(tp->snd_una, cdg->round_end)) {
		cdg->round_end = tp->snd_nxt;
		cdg->new_round = 1;
	}
}

WT_INLINE void cdg_acked(struct sock *sk, const struct ack_sample *sample)
{
	wt_guard(sk);
	cdg_sample(sk, wt_priv(sk), sample);
}

/* The end of a round trip: judges its gradients; whether they are a sign of congestion. */
WT_INLINE int cdg_round(struct sock *sk, struct cdg *cdg)
{
	int congestion;

	if (!cdg->round_max)
		return 0;
	congestion = cdg_compare(sk, cdg);
	cdg->last_min = cdg->round_min;
	cdg->last_max = cdg->round_max;
	cdg->round_min = 0xffffffff;
	cdg->round_max = 0;
	if (congestion)
		cdg_congestion(sk, cdg);
	return congestion;
}

/* One packet per round trip whatever the window; with alpha_inc = n one more after every n round trips. */
WT_INLINE void cdg_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct cdg *cdg = wt_priv(sk);
	struct tcp_sock *tp = wt_tp(sk);
	u32 shadow_step = 0;
	int round = cdg->new_round;

	(void)ack;
	cdg->new_round = 0;
	if (round && cdg_round(sk, cdg))
		return;
	if (wt_in_slow_start(tp)) {
		u32 before = tp->snd_cwnd;

		wt_slow_start(tp, acked);
		shadow_step = tp->snd_cwnd - before;
		cdg->step = 0;
		cdg->rounds = 0;
	} else if (round) {
		u32 step = 1;
		u32 every = PARAM(sk, alpha_inc);

		shadow_step = 1;
		if (every) {
			if (++cdg->rounds >= every) {
				cdg->step++;
				cdg->rounds = 0;
			}
			step = cdg->step;
		}
		wt_set_cwnd(tp, tp->snd_cwnd + step);
	}
	if (cdg->shadow)
		cdg->shadow = wt_min(cdg->shadow + shadow_step, tp->snd_cwnd_clamp);
}

WT_INLINE u32 cdg_ssthresh(struct sock *sk)
{
	struct cdg *cdg = wt_priv(sk);
	struct tcp_sock *tp = wt_tp(sk);
	u32 window = wt_min(tp->snd_cwnd, (u32)wt_div(tp->snd_wnd, tp->mss_cache));

	WT_COUNT(sk, losses);
	if (cdg->recovering || cdg->state < CDG_FULL) {
		WT_COUNT(sk, tolerated);
		return wt_max(tp->snd_cwnd, 2);
	}
	cdg->shadow /= 2;
	cdg->step = 0;
	cdg->rounds = 0;
	return wt_max(wt_max(cdg->shadow, (u32)((u64)window * PARAM(sk, beta_loss_ppm) / 1000000)), 2);
}

WT_INLINE void cdg_event(struct sock *sk, u32 event)
{
	if (event == WT_EVENT_LOSS)
		wt_tp(sk)->snd_ssthresh = wt_half(wt_tp(sk), wt_tp(sk)->snd_cwnd);
}

WT_CONGESTION_CONTROL(cdg, cdg_init, cdg_ssthresh, cdg_cong_avoid, cdg_acked, cdg_event, wt_no_state)
