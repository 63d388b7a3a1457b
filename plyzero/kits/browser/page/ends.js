export const describeEnds = () => ({ firstMoves: [], ends: [] });
