import { openModel } from '../../src/learn/model/model.ts'
import type { GoldenSuite } from './suite.ts'

interface Row {
  readonly ids: readonly number[]
  /** The first token has none. */
  readonly logprobs: readonly (number | null)[]
  /** The likeliest next ids. */
  readonly next: readonly (readonly [id: number, logprob: number])[]
}

/** How far a log-probability may lie from the one that transformers computed in float32. */
const tolerance = 1e-4

/** Log-probabilities of a pretrained model inside, against transformers. */
export const smollm2Suite: GoldenSuite = {
  name: 'smollm2',
  matches: path => /(?:^|\/)smollm2\/logprobs\.jsonl(?:\.gz)?$/.test(path),
  async run(text, { smollm2: folder }) {
    if (folder === undefined) {
      return { passed: 0, failures: [], notes: ['skipped: name the model with --smollm2 DIR'] }
    }
    const rows = text.split('\n').filter(line => line !== '')
    await using model = await openModel({ folder })
    const call = { signal: new AbortController().signal }
    const problems = await Promise.all(
      rows.map(async (line, index) => {
        const { ids, logprobs, next } = JSON.parse(line) as Row
        const prompt = Int32Array.from(ids)
        const found = await model.score(prompt, 1, { temperature: 1 }, call)
        const far = found.logprobs.findIndex(
          (logprob, at) => !(Math.abs(logprob - logprobs[at + 1]!) < tolerance),
        )
        if (far >= 0) {
          const numbers = `${found.logprobs[far]}, not ${logprobs[far + 1]}`
          return [`row ${index + 1}, token ${far + 1}: ${numbers}`]
        }
        const drawn = await model.sample(
          { prompt, maxTokens: 1, temperature: 0, stop: [], seed: 0 },
          call,
        )
        const likeliest = next[0]![0]
        return drawn.ids[0] === likeliest
          ? []
          : [`row ${index + 1}: ${drawn.ids[0]} comes next, not ${likeliest}`]
      }),
    )
    const failures = problems.flat()
    return { passed: rows.length - failures.length, failures }
  },
}
