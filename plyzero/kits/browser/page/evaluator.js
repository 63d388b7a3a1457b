// A network of plyzero, an ONNX file, as an evaluator of search.js. `ort` is onnxruntime-web, or its part for WebAssembly.

// Returns the evaluator. Rejects with an Error if the file is no network of `game`.
export async function loadNetwork(ort, bytes, game) {
  const session = await ort.InferenceSession.create(bytes);
  const hasPoints = game.maxScore > 0 && session.outputNames.includes("score");
  const fetched = ["logits", "wdl", ...(hasPoints ? ["score"] : [])];

  async function evaluate(observations, count) {
    const found = await session.run({ observations: new ort.Tensor("float32", observations, [count, ...game.observation]) }, fetched);
    const logits = found.logits.data, wdl = found.wdl.data;
    if (logits.length !== count * game.actions || wdl.length !== 3 * count) {
      throw new Error(`Expected a network with ${game.actions} actions, got one with ${logits.length / count}; share the game again.`);
    }
    return { logits, wdl, points: hasPoints ? pointsOf(found.score.data, count) : undefined };
  }

  // Of each position the graph returns the mean, as a share of maxScore, and the log of the deviation.
  function pointsOf(scores, count) {
    return Float32Array.from({ length: count }, (_, i) => game.maxScore * scores[2 * i]);
  }

  await evaluate(new Float32Array(game.observation.reduce((size, each) => size * each)), 1);
  return evaluate;
}
