// The game of words.ts without a network: each seat is a table of 4 × 4 logits, learned with the advantages, the batch
// and the optimiser of `train`. With `bias`, all inputs of a seat also share four logits, as they share a network's
// weights. `npx tsx examples/experiments/words-table.ts` prints how many of 16 seeds agree after 250 steps.
import { grpoAdvantages } from 'espalier/math'
import { draws } from './draws.ts'

const [kinds, tasks, group, steps, seeds] = [4, 16, 8, 250, 16]

/** Four numbers that Adam moves by a rate, with the moments of `train`. */
function makeWeights(rate: number) {
  const values = new Float64Array(kinds)
  const first = new Float64Array(kinds)
  const second = new Float64Array(kinds)
  let step = 0
  return {
    values,
    climb(gradient: Float64Array): void {
      step++
      gradient.forEach((slope, at) => {
        first[at] = 0.9 * first[at]! + 0.1 * slope
        second[at] = 0.95 * second[at]! + 0.05 * slope ** 2
        const [mean, square] = [first[at]! / (1 - 0.9 ** step), second[at]! / (1 - 0.95 ** step)]
        values[at]! += (rate * mean) / (Math.sqrt(square) + 1e-8)
      })
    },
  }
}

/** A seat: a row of logits for each input, and four that all rows share. */
function makeSeat(rate: number, bias: number) {
  const rows = Array.from({ length: kinds }, () => makeWeights(rate))
  const shared = makeWeights(rate * bias)
  const chances = (input: number): number[] => {
    const raised = [...rows[input]!.values].map((logit, at) => Math.exp(logit + shared.values[at]!))
    const sum = raised.reduce((total, each) => total + each, 0)
    return raised.map(each => each / sum)
  }
  return {
    choose(input: number, draw: number): number {
      let left = draw
      for (const [at, chance] of chances(input).entries()) {
        left -= chance
        if (left < 0) return at
      }
      return kinds - 1
    },
    learn(said: readonly { input: number; output: number; advantage: number }[]): void {
      const slopes = rows.map(() => new Float64Array(kinds))
      const all = new Float64Array(kinds)
      for (const { input, output, advantage } of said) {
        chances(input).forEach((chance, at) => {
          const slope = (advantage * (Number(at === output) - chance)) / said.length
          slopes[input]![at]! += slope
          all[at]! += slope
        })
      }
      for (const [input, row] of rows.entries()) row.climb(slopes[input]!)
      if (bias > 0) shared.climb(all)
    },
  }
}

/** The share of attempts that agree over the last ten steps. */
function play(seed: number, bias: number): number {
  const draw = draws(seed)
  const [speaker, hearer] = [makeSeat(0.05, bias), makeSeat(0.05, bias)]
  let agreed = 0
  for (let step = 1; step <= steps; step++) {
    const attempts = Array.from({ length: tasks * group }, (_, index) => {
      const thing = Math.floor(index / group) % kinds
      const word = speaker.choose(thing, draw())
      const named = hearer.choose(word, draw())
      const reward = Number(named === thing)
      return { group: Math.floor(index / group), trajectory: index, thing, word, named, reward }
    })
    const advantages = grpoAdvantages(attempts)
    const weighed = attempts.map((each, at) => ({ ...each, advantage: advantages[at] ?? 0 }))
    speaker.learn(weighed.map(each => ({ ...each, input: each.thing, output: each.word })))
    hearer.learn(weighed.map(each => ({ ...each, input: each.word, output: each.named })))
    if (step > steps - 10) agreed += attempts.filter(({ reward }) => reward === 1).length
  }
  return agreed / (10 * tasks * group)
}

for (const bias of [0, 1, 4]) {
  const shares = Array.from({ length: seeds }, (_, seed) => play(seed + 1, bias))
  const mean = shares.reduce((sum, share) => sum + share, 0) / seeds
  const solved = shares.filter(share => share > 0.9).length
  console.log(`bias ${bias}: ${mean.toFixed(2)} agree on average, ${solved} of ${seeds} seeds`)
}
