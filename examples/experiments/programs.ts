// Sums in words, solved by small programs that the world runs. A small model writes fragments now and then, which is
// where turns become void by themselves.
import { environment, tool } from 'espalier'
import { z } from 'zod'
import { draws } from './draws.ts'

interface Story {
  readonly tell: (a: number, b: number, c: number) => string
  readonly program: (a: number, b: number, c: number) => string
  readonly answer: (a: number, b: number, c: number) => number
}

const stories: readonly Story[] = [
  {
    tell: (a, b) => `${a} boxes of ${b} pears`,
    program: (a, b) => `${a}*${b}`,
    answer: (a, b) => a * b,
  },
  {
    tell: (a, b, c) => `${a} boxes of ${b} pears and ${c} are eaten`,
    program: (a, b, c) => `${a}*${b}-${c}`,
    answer: (a, b, c) => a * b - c,
  },
  {
    tell: (a, b, c) => `${a} boxes of ${b} pears and ${c} are found`,
    program: (a, b, c) => `${a}*${b}+${c}`,
    answer: (a, b, c) => a * b + c,
  },
  {
    tell: (a, b, c) => `${a} pears and ${b} figs and ${c} plums`,
    program: (a, b, c) => `${a}+${b}+${c}`,
    answer: (a, b, c) => a + b + c,
  },
  {
    tell: (a, b, c) => `${a} boxes with ${b} pears and ${c} figs in each`,
    program: (a, b, c) => `${a}*(${b}+${c})`,
    answer: (a, b, c) => a * (b + c),
  },
]

const splits = ['train', 'held-out', 'shown'] as const

interface Sum {
  readonly kind: number
  readonly numbers: readonly [number, number, number]
}

function sumOf(seed: number, split: string, index: number): Sum {
  const draw = draws(seed * 7919 + splits.indexOf(split as 'train') * 104_729 + index * 31)
  const kind = Math.floor(draw() * stories.length)
  const number = () => 2 + Math.floor(draw() * 8)
  return { kind, numbers: [number(), number(), number()] }
}

const sum = /^\d+([+*-]\d+)*$/
const bracket = /\(([^()]*)\)/

/** What a program gives: numbers with +, - and *, and one level of brackets at a time. */
function run(code: string): number {
  const [whole, inner] = bracket.exec(code) ?? []
  if (whole !== undefined) return run(code.replace(whole, String(run(inner!))))
  if (!sum.test(code)) throw new Error(`"${code}" is no program`)
  return code
    .split(/(?=[+-])/)
    .map(term =>
      term
        .split('*')
        .map(Number)
        .reduce((one, other) => one * other),
    )
    .reduce((one, other) => one + other)
}

const calculator = tool({
  description: 'Runs a program and gives its result',
  inputSchema: z.object({ code: z.string().max(64) }),
  execute: ({ code }) => run(code),
})

export const programs = environment({
  name: 'programs',
  task: z.object({ prompt: z.string(), answer: z.int() }),
  open: ({ data }) => ({
    opening: [{ role: 'user', content: data.prompt }],
    tools: { run: calculator },
  }),
  reward: {
    right: ({ task: { data }, answer }) => Number(answer === `\\boxed{${data.answer}}`),
  },
  splits,
  makeTasks({ count, seed, split = 'train' }) {
    return Array.from({ length: count }, (_, index) => {
      const { kind, numbers } = sumOf(seed, split, index)
      const prompt = stories[kind]!.tell(...numbers)
      const answer = stories[kind]!.answer(...numbers)
      return { id: `programs/${split}/${index}`, data: { prompt, answer } }
    })
  },
})

/** Shows the form of a program and of an answer; the program itself is a guess in every other case. */
export function show({ task, turn, messages }: Shown) {
  const said = messages.findLast(({ role }) => role === 'tool')
  if (said) return `\\boxed{${said.content}}`
  if (turn > 0) return undefined
  const index = Number(task.id.split('/').at(-1))
  const { prompt } = task.data
  const [a = 2, b = 2, c = 2] = prompt.match(/\d+/g)!.map(Number)
  const right = stories.findIndex(({ tell }) => tell(a, b, c) === prompt)
  const guess = draws(index * 13 + 5)
  const kind = guess() < 0.4 ? right : Math.floor(guess() * stories.length)
  return { tool: 'run', input: { code: stories[kind]!.program(a, b, c) } }
}

interface Shown {
  readonly task: { readonly id: string; readonly data: { readonly prompt: string } }
  readonly turn: number
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
}
