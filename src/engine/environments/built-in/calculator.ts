import { z } from 'zod'
import { isNumberAnswer } from '../../../base/core/answer.ts'
import type { Environment, MakeTasksOptions, Task } from '../../../base/core/environment.ts'
import type { TaskId } from '../../../base/core/ids.ts'
import { type Random, random, seedOf } from '../../../base/math/random.ts'
import { environment } from '../environment.ts'
import { late } from '../late.ts'
import { tool } from '../tools/tool.ts'
import { evaluateExpression } from './expression.ts'
import { openingOf, type PromptTask, promptTask } from './prompt-task.ts'

const calculate = late(() =>
  tool({
    description: 'Evaluates an arithmetic expression, for example "12 * (3 + 4)".',
    inputSchema: z.object({ expression: z.string() }),
    // A double is exact to fifteen digits, so 0.1 + 0.2 is shown as 0.3.
    execute: ({ expression }) => String(Number(evaluateExpression(expression).toPrecision(15))),
  }),
)

const splits = ['train', 'test'] as const

/** Arithmetic with one tool, `calculate`; rewarded if the answer is the right number. */
export function calculator(): Environment<PromptTask> {
  return environment({
    name: 'calculator',
    task: promptTask,
    open: ({ data }) => ({ opening: openingOf(data), tools: { calculate: calculate() } }),
    reward: { right: ({ task, answer }) => Number(isNumberAnswer(answer, task.data)) },
    makeTasks,
    splits,
  })
}

function makeTasks({
  count,
  seed,
  split = 'train',
}: MakeTasksOptions): readonly Task<PromptTask>[] {
  return Array.from({ length: count }, (_, index) => {
    const expression = makeExpression(random(seedOf(seed, 'calculator', split, index)), 2)
    return {
      id: `calculator/${split}/${index}` as TaskId,
      data: {
        prompt: `What is ${expression}? Answer with the number only.`,
        answer: evaluateExpression(expression),
      },
    }
  })
}

function makeExpression(draw: Random, depth: number): string {
  if (depth === 0 || draw() < 0.2) return String(1 + Math.floor(draw() * 99))
  const sign = ['+', '-', '*'][Math.floor(draw() * 3)]
  const expression = `${makeExpression(draw, depth - 1)} ${sign} ${makeExpression(draw, depth - 1)}`
  return depth === 2 ? expression : `(${expression})`
}
