/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Where the note of a connection is kept.
 *
 * On Linux 6.15 notes lie in a table, each where its socket's cookie says (older ones of some processors can't exchange words). Where
 * that place is another open connection's, and on older kernels, the kernel keeps the note with its socket: two pieces of memory that are
 * counted for a control group and given back when all processors have gone on, which takes one to two µs more. Of a socket whose
 * flags somebody else clears the end isn't seen: it holds its place until the experiment's end.
 */
#ifdef RESPONSES
#define PLACES 8192
struct place {
	u64 cookie; /* 0: free */
	struct note note;
};
struct place table[PLACES] SEC(".bss.table");
_Static_assert(sizeof(struct place) == 128, "two cache lines");

/* Where the note of a socket with this cookie may lie (Knuth's multiplier: cookies are numbers in a row). */
INLINE struct place *place_of(u64 cookie)
{
	return &table[(cookie * 0x9e3779b97f4a7c15ULL) >> 51 & (PLACES - 1)];
}

/* A note for this socket, of which something must be written into every field that is read; none where there is no memory. */
INLINE struct note *new_note(void *sk, u64 cookie)
{
	struct place *place = place_of(cookie);

	if (!__sync_val_compare_and_swap(&place->cookie, 0, cookie))
		return &place->note;
	return storage_get(&notes, sk, 0, 1);
}

INLINE struct note *note_of(void *sk, u64 cookie)
{
	struct place *place = place_of(cookie);

	if (place->cookie == cookie)
		return &place->note;
	return storage_get(&notes, sk, 0, 0);
}

/* What the kernel keeps goes with the socket. Whoever takes the place must not write before all was read here, hence an exchange. */
INLINE void forget(u64 cookie)
{
	struct place *place = place_of(cookie);

	if (place->cookie == cookie)
		__sync_lock_test_and_set(&place->cookie, 0);
}
#else
#define cookie_of(s) 0

INLINE struct note *new_note(void *sk, u64 cookie)
{
	(void)cookie;
	return storage_get(&notes, sk, 0, 1);
}

INLINE struct note *note_of(void *sk, u64 cookie)
{
	(void)cookie;
	return storage_get(&notes, sk, 0, 0);
}

INLINE void forget(u64 cookie)
{
	(void)cookie;
}
#endif
