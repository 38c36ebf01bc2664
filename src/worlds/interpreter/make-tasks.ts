import type { MakeTasksOptions, Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { type Random, random, seedOf } from '../../base/math/random.ts'
import type { PromptTask } from '../../engine/environments/built-in/prompt-task.ts'

/** The splits that tasks are made for. */
export const splits = ['train', 'test'] as const

interface Problem {
  readonly ask: string
  readonly answer: number
}

const kinds: readonly ((draw: Random) => Problem)[] = [digitSum, countPrimes, sumMultiples, modulus]

/** Sums that are quick to compute and long to think through, each with its answer. */
export function makeTasks(options: MakeTasksOptions): readonly Task<PromptTask>[] {
  const { count, seed, split = splits[0] } = options
  return Array.from({ length: count }, (_, index) => {
    const draw = random(seedOf(seed, 'interpreter', split, index))
    const { ask, answer } = kinds[Math.floor(draw() * kinds.length)]!(draw)
    const id = `interpreter/${split}/${index}` as TaskId
    return { id, data: { prompt: `${ask} Answer with the number only.`, answer } }
  })
}

function between(draw: Random, low: number, high: number): number {
  return low + Math.floor(draw() * (high - low + 1))
}

function digitSum(draw: Random): Problem {
  const [base, power] = [between(draw, 2, 9), between(draw, 20, 200)]
  const digits = String(BigInt(base) ** BigInt(power))
  const answer = [...digits].reduce((sum, digit) => sum + Number(digit), 0)
  return {
    ask: `What is the sum of the decimal digits of ${base} to the power of ${power}?`,
    answer,
  }
}

function countPrimes(draw: Random): Problem {
  const below = between(draw, 100, 5000)
  const isComposite = new Uint8Array(below)
  let answer = 0
  for (let number = 2; number < below; number++) {
    if (isComposite[number] === 1) continue
    answer++
    for (let multiple = number * number; multiple < below; multiple += number)
      isComposite[multiple] = 1
  }
  return { ask: `How many prime numbers are below ${below}?`, answer }
}

function sumMultiples(draw: Random): Problem {
  const [first, second, below] = [
    between(draw, 3, 9),
    between(draw, 10, 19),
    between(draw, 200, 3000),
  ]
  let answer = 0
  for (let number = 1; number < below; number++) {
    if (number % first === 0 || number % second === 0) answer += number
  }
  const ask = `What is the sum of all whole numbers from 1 to ${below - 1} that are divisible by ${first} or by ${second}?`
  return { ask, answer }
}

function modulus(draw: Random): Problem {
  const [base, power, by] = [between(draw, 2, 99), between(draw, 50, 500), between(draw, 11, 997)]
  const answer = Number(BigInt(base) ** BigInt(power) % BigInt(by))
  return {
    ask: `What is the remainder of ${base} to the power of ${power} divided by ${by}?`,
    answer,
  }
}
