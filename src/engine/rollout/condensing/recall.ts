import type { CallAttempt, Message, Reply, ToolMessage } from '@espalier/text'
import type { Recall } from '../../../base/core/condenser.ts'
import type { StepCall, Transition } from '../../../base/core/environment.ts'
import type { NonEmpty } from '../../../base/core/ids.ts'
import type { CallRecord } from '../../../base/core/tool.ts'
import { note, type Walk } from '../walk.ts'

/** Steps the walk's world; calls that recall a block are answered here, the world never sees them. */
export function stepWithRecall(walk: Walk, action: Reply, call: StepCall): Promise<Transition> {
  const recall = walk.condensing?.by.recall
  if (!recall) return walk.world.step(action, call)
  return stepBesideRecall(walk, action, { recall, call })
}

async function stepBesideRecall(
  walk: Walk,
  action: Reply,
  { recall, call }: { readonly recall: Recall; readonly call: StepCall },
): Promise<Transition> {
  const own = action.calls.filter(attempt => isRecall(recall, attempt.name))
  if (own.length === 0) return await walk.world.step(action, call)
  const answers = answerAll(walk, recall, own)
  const rest = action.calls.filter(attempt => !isRecall(recall, attempt.name))
  if (rest.length === 0) {
    const observed = nonEmpty(answers.map(({ message }) => message))
    return { kind: 'continue', observed, calls: answers.map(({ record }) => record) }
  }
  const others = await walk.world.step(withCalls(action, rest), call)
  return merge(action, answers, others)
}

/** How many of the first `turns` turns reached the world: those that did more than recall. */
export function worldSteps(calls: readonly CallRecord[], turns: number): number {
  const recalling = new Set<number>()
  const acting = new Set<number>()
  for (const { turn, isRecall: asks } of calls) (asks ? recalling : acting).add(turn)
  const onlyRecalled = [...recalling].filter(turn => turn < turns && !acting.has(turn))
  return turns - onlyRecalled.length
}

function isRecall({ definition }: Recall, name: string | undefined): boolean {
  return name === definition.function.name
}

interface Answer {
  readonly message: ToolMessage
  readonly record: CallRecord
}

/** Each call sees what the ones before it gave back. */
function answerAll(walk: Walk, recall: Recall, calls: readonly CallAttempt[]): readonly Answer[] {
  const shown: Message[] = [...walk.shown]
  return calls.map(attempt => {
    const answer = answerOne(walk, recall, { attempt, shown })
    shown.push(answer.message)
    return answer
  })
}

function answerOne(
  walk: Walk,
  recall: Recall,
  { attempt, shown }: { readonly attempt: CallAttempt; readonly shown: readonly Message[] },
): Answer {
  const { name } = recall.definition.function
  const input = attempt.kind === 'parsed' ? (JSON.parse(attempt.arguments) as unknown) : attempt.raw
  const { content, problem, recalled } =
    attempt.kind === 'parsed' ? recall.answer(input, shown) : malformed(attempt.problem)
  if (recalled) {
    const { block, characters } = recalled
    note(walk, 'recalled', {
      detail: `block ${block}: ${characters} characters`,
      figures: recalled,
    })
  }
  const record = { turn: walk.turns.length - 1, id: attempt.id, tool: name, input, output: content }
  return {
    message: { role: 'tool', tool_call_id: attempt.id, name, content },
    record: {
      ...record,
      isRecall: true,
      seconds: 0,
      ...(problem && { problem }),
      ...(recalled?.cut && { cut: recalled.cut }),
    },
  }
}

function malformed(problem: string): ReturnType<Recall['answer']> {
  return { content: `Error: the call could not be read: ${problem}`, problem: 'malformed-call' }
}

function withCalls(action: Reply, calls: readonly CallAttempt[]): Reply {
  const ids = new Set(calls.map(({ id }) => id))
  const { tool_calls: toolCalls = [], ...message } = action.message
  return { calls, message: { ...message, tool_calls: toolCalls.filter(({ id }) => ids.has(id)) } }
}

/** Results stand in the order of the calls, whoever answered them. */
function merge(action: Reply, answers: readonly Answer[], others: Transition): Transition {
  const order = new Map(action.calls.map(({ id }, index) => [id, index]))
  const place = (message: Message): number =>
    message.role === 'tool' ? (order.get(message.tool_call_id) ?? order.size) : order.size
  const observed = [...answers.map(({ message }) => message), ...(others.observed ?? [])]
  const calls = [...answers.map(({ record }) => record), ...(others.calls ?? [])]
  const sorted = observed.sort((a, b) => place(a) - place(b))
  return { ...others, observed: nonEmpty(sorted), calls } as Transition
}

function nonEmpty<T>(items: readonly T[]): NonEmpty<T> {
  return items as unknown as NonEmpty<T>
}
