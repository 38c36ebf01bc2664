import { z } from 'zod'
import type { Environment, MakeTasksOptions, Task } from '../../../base/core/environment.ts'
import type { TaskId } from '../../../base/core/ids.ts'
import { type Random, random, seedOf, shuffle } from '../../../base/math/random.ts'
import { environment } from '../environment.ts'
import { lateSchema } from '../late.ts'
import type { OpenedWorld } from '../opened-world.ts'

/** Tasks in plain words for small pretrained models: every reply is a line, every answer of the world a word or two. */
export const smallTalks = ['calc2', 'signs', 'guess', 'cheaper'] as const

/** The name of one. */
export type SmallTalk = (typeof smallTalks)[number]

/** What the world of such a task answers to a line; undefined at the end. */
interface Answerer {
  /** The most lines of the policy. */
  readonly turns: number
  answer(line: string, turn: number): string | undefined
  isSolved(): boolean
}

/** A kind of task. */
interface Kind<Data> {
  readonly rules: string
  readonly schema: () => z.ZodType<Data>
  question(data: Data): string
  open(data: Data): Answerer
  make(draw: Random): Data
  /** Conversations that show how it is done: question, line, answer, line, …. */
  readonly shown: readonly (readonly string[])[]
}

interface Sum {
  readonly first: number
  readonly steps: readonly number[]
}

const from = (draw: Random, least: number, most: number): number =>
  least + Math.floor(draw() * (most - least + 1))

const sums = {
  rules: 'Write a sum and the calculator answers. Then write the answer.',
  schema: () => z.object({ first: z.int(), steps: z.array(z.int()).min(1) }),
  question: ({ first, steps }: Sum) =>
    [first, ...steps.map(step => `${step < 0 ? 'minus' : 'plus'} ${Math.abs(step)}`)].join(' '),
  open({ first, steps }: Sum): Answerer {
    const wanted = steps.reduce((sum, step) => sum + step, first)
    let isSolved = false
    return {
      turns: 4,
      answer(line, turn) {
        if (isAnswer(line)) {
          isSolved = turn > 0 && /-?\d+/.exec(line)?.[0] === String(wanted)
          return undefined
        }
        const [, one, sign, other] = /(\d+)\s*([+-])\s*(\d+)/.exec(line) ?? []
        if (one === undefined) return undefined
        return `= ${sign === '+' ? Number(one) + Number(other) : Number(one) - Number(other)}`
      },
      isSolved: () => isSolved,
    }
  },
} as const

const twoSteps = ['51 plus 37 minus 6', '51+37', '= 88', '88-6', '= 82', 'Answer: 82']

const calc2: Kind<Sum> = {
  ...sums,
  make: draw => ({ first: from(draw, 10, 60), steps: [from(draw, 10, 39), -from(draw, 2, 9)] }),
  shown: [['14 plus 22 minus 5', '14+22', '= 36', '36-5', '= 31', 'Answer: 31'], twoSteps],
}

const signs: Kind<Sum> = {
  ...sums,
  make(draw) {
    const step = (): number => (draw() < 0.5 ? from(draw, 10, 39) : -from(draw, 2, 9))
    return { first: from(draw, 10, 60), steps: [step(), step()] }
  },
  shown: [
    ['14 plus 22', '14+22', '= 36', 'Answer: 36'],
    twoSteps,
    ['40 minus 3 plus 25', '40-3', '= 37', '37+25', '= 62', 'Answer: 62'],
  ],
}

const guessing = 'Guess my number from 1 to 7.'

const guess: Kind<{ readonly secret: number }> = {
  rules: 'You guess a secret number. Answer with one number only.',
  schema: () => z.object({ secret: z.int().min(1).max(7) }),
  question: () => guessing,
  open({ secret }) {
    let isSolved = false
    return {
      turns: 3,
      answer(line) {
        const number = Number(/\d+/.exec(line)?.[0] ?? Number.NaN)
        isSolved = number === secret
        if (isSolved) return undefined
        if (Number.isNaN(number)) return 'Answer with one number.'
        return number < secret ? 'higher' : 'lower'
      },
      isSolved: () => isSolved,
    }
  },
  make: draw => ({ secret: from(draw, 1, 7) }),
  shown: [
    [guessing, '4', 'higher', '6', 'lower', '5'],
    [guessing, '4', 'lower', '2', 'higher', '3'],
  ],
}

const goods = [
  ...[
    'lamp',
    'kettle',
    'chair',
    'radio',
    'clock',
    'blanket',
    'mirror',
    'basket',
    'camera',
    'ladder',
  ],
  ...['pillow', 'hammer', 'bottle', 'guitar', 'carpet', 'fan', 'desk', 'vase', 'drill', 'toaster'],
]

interface Prices {
  readonly prices: Readonly<Record<string, number>>
}

const cheaper: Kind<Prices> = {
  rules: 'Write a thing and the price list answers. Then write which is cheaper.',
  schema: () => z.object({ prices: z.record(z.string(), z.number()) }),
  question: ({ prices }) => `${Object.keys(prices).join(' or ')}?`,
  open({ prices }) {
    const seen = new Set<string>()
    let isSolved = false
    const things = Object.keys(prices)
    const least = things.reduce((one, other) => (prices[other]! < prices[one]! ? other : one))
    return {
      turns: things.length + 1,
      answer(line) {
        const named = things.find(thing => line.toLowerCase().includes(thing))
        if (isAnswer(line)) {
          isSolved = seen.size === things.length && named === least
          return undefined
        }
        if (named === undefined) return undefined
        seen.add(named)
        return `= ${prices[named]}`
      },
      isSolved: () => isSolved,
    }
  },
  make(draw) {
    const [one, other] = shuffle(goods, draw)
    const price = from(draw, 2, 98)
    const higher = from(draw, price + 1, 99)
    const [first, second] = draw() < 0.5 ? [price, higher] : [higher, price]
    return { prices: { [one!]: first, [other!]: second } }
  },
  shown: [
    ['spoon or table?', 'spoon', '= 3', 'table', '= 78', 'Answer: spoon'],
    ['piano or pencil?', 'piano', '= 95', 'pencil', '= 2', 'Answer: pencil'],
  ],
}

const kinds = { calc2, signs, guess, cheaper } as const

/** Whether a line says that it is the answer. */
function isAnswer(line: string): boolean {
  return line.toLowerCase().startsWith('answer')
}

/** A task of several plain lines; rewarded with 1 if it is solved. It brings its own demonstrations. */
export function smallTalk(name: SmallTalk): Environment {
  return build(name, kinds[name] as unknown as Kind<unknown>)
}

function build<Data>(name: string, kind: Kind<Data>): Environment {
  const { rules, schema, question, shown } = kind
  return environment({
    name,
    task: lateSchema(schema),
    open: ({ data }): OpenedWorld<boolean> => {
      const answerer = kind.open(data as Data)
      return {
        opening: [
          { role: 'system', content: rules },
          { role: 'user', content: question(data as Data) },
        ],
        respond(text, { turn }) {
          const answered = answerer.answer(text.trim(), turn)
          return turn + 1 >= answerer.turns ? undefined : answered
        },
        report: () => answerer.isSolved(),
      }
    },
    reward: { solved: ({ report }) => Number(report) },
    makeTasks: options => makeTasks(name, kind, options),
    splits: ['train', 'held-out'],
    demonstrations: shown.map(([asked, ...lines]) => [
      { role: 'user' as const, content: asked! },
      ...lines.map((content, index) => ({
        role: index % 2 === 0 ? ('assistant' as const) : ('user' as const),
        content,
      })),
    ]),
  }) as Environment
}

function makeTasks<Data>(
  name: string,
  { make }: Kind<Data>,
  { count, seed, split = 'train' }: MakeTasksOptions,
): readonly Task<Data>[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `${name}/${split}/${index}` as TaskId,
    data: make(random(seedOf(seed, name, split, index))),
  }))
}
