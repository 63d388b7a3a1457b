/* Connect Four: drop discs into columns, four in a row wins. The same rules as games/connect_four.py.

   cc -O2 -shared -fPIC -I ../../plyzero/rules -o libconnect_four.so connect_four.c */
#include "plyzero.h"

enum { ROWS = 6, COLUMNS = 7 };

typedef struct { /* as State in connect_four.py */
  int8_t board[ROWS][COLUMNS];
  int8_t plies, result, to_play;
} State;

void plyzero_start(void *state) { ((State *)state)->result = PLYZERO_ONGOING; }

/* Returns whether the disc on (row, column) is one of at least four in a row, in any direction. */
static bool four_through(const State *s, int row, int column) {
  static const int directions[4][2] = {{0, 1}, {1, 0}, {1, 1}, {1, -1}};
  for (int d = 0; d < 4; d++) {
    int count = 1;
    for (int sign = -1; sign <= 1; sign += 2) {
      int up = sign * directions[d][0], right = sign * directions[d][1];
      for (int r = row + up, c = column + right;
           0 <= r && r < ROWS && 0 <= c && c < COLUMNS && s->board[r][c] == s->board[row][column]; r += up, c += right)
        count++;
    }
    if (count >= 4) return true;
  }
  return false;
}

void plyzero_play(void *state, int32_t action) {
  State *s = state;
  int row = 0;
  while (s->board[row][action]) row++;
  s->board[row][action] = s->to_play + 1;
  s->plies++;
  if (four_through(s, row, action))
    s->result = s->to_play;
  else if (s->plies == ROWS * COLUMNS)
    s->result = PLYZERO_DRAW;
  s->to_play = 1 - s->to_play;
}

int32_t plyzero_outcome(const void *state) { return ((const State *)state)->result; }

void plyzero_legal(const void *state, bool *mask) {
  const State *s = state;
  for (int column = 0; column < COLUMNS; column++) mask[column] = !s->board[ROWS - 1][column];
}

void plyzero_observe(const void *state, float *planes) {
  const State *s = state;
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < COLUMNS; column++)
      if (s->board[row][column])
        planes[(((s->board[row][column] - 1) ^ s->to_play) * ROWS + row) * COLUMNS + column] = 1;
}
