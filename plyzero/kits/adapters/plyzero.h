/* The rules of a game as functions over the bytes of a state, for plyzero.NativeGame (docs/games.md).

   A state is a plain struct without pointers, one field of which, to_play, is the player to move, 0 or 1. It is aligned
   as its size demands, to 16 bytes at most. plyzero copies states with memcpy, and calls the functions from several
   threads and processes, so a function keeps nothing outside of the state. */
#ifndef PLYZERO_H
#define PLYZERO_H

#include <stdbool.h>
#include <stdint.h>

#define PLYZERO_ONGOING (-2)
#define PLYZERO_DRAW (-1)

#if defined(__GNUC__)
#define PLYZERO_EXPORT __attribute__((visibility("default")))
#else
#define PLYZERO_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the initial position of a state whose bytes are all zero. */
PLYZERO_EXPORT void plyzero_start(void *state);

/* Only with set-ups: makes the position of a set-up, whose number is from 0 to setups - 1, of a state that plyzero_start
   has made. */
PLYZERO_EXPORT void plyzero_set_up(void *state, uint32_t number);

/* Plays a legal action or, where chance moves, a roll. */
PLYZERO_EXPORT void plyzero_play(void *state, int32_t action);

/* Returns PLYZERO_ONGOING, PLYZERO_DRAW or the winner, 0 or 1. */
PLYZERO_EXPORT int32_t plyzero_outcome(const void *state);

/* Marks the legal actions in mask[num_actions], which is all false. It is not called when the game is over. */
PLYZERO_EXPORT void plyzero_legal(const void *state, bool *mask);

/* Writes what the player to move sees into planes[planes][rows][columns], which are all zero. */
PLYZERO_EXPORT void plyzero_observe(const void *state, float *planes);

/* Only with dice: writes the probability of each roll into weights[num_chances], which are all zero and stay so where a
   player moves. */
PLYZERO_EXPORT void plyzero_chances(const void *state, float *weights);

/* Only with points: returns by how many the winner of a finished game leads, 0 in a draw. */
PLYZERO_EXPORT double plyzero_score(const void *state);

#ifdef __cplusplus
}
#endif
#endif
