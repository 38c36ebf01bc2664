import type { Condensing, Recall } from '../core/condenser.ts'
import type { StepCall, Transition, World } from '../core/environment.ts'
import type { NonEmpty } from '../core/ids.ts'
import type { CallAttempt, Message, Reply, ToolMessage } from '../core/message.ts'
import type { CallRecord } from '../core/tool.ts'

/** The same world with a tool that gives back what was condensed; the world itself never sees its calls. */
export function withRecall(world: World, { recall }: Condensing): World {
  if (!recall) return world
  const { fork, forkAt } = world
  return {
    ...world,
    opening: world.opening,
    tools: [...world.tools, recall.definition],
    step: (action, call) => stepWithRecall(world, recall, { action, call }),
    ...(fork && {
      fork: async call =>
        withRecall(await fork.call(world, call), { recall, condense: neverAsked }),
    }),
    ...(forkAt && {
      forkAt: async (turns, call) =>
        withRecall(await forkAt.call(world, turns, call), { recall, condense: neverAsked }),
    }),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }
}

/** A fork shares its walk's memory of blocks; only its recall is used. */
function neverAsked(): never {
  throw new Error('a recalling world does not condense')
}

async function stepWithRecall(
  world: World,
  recall: Recall,
  { action, call }: { readonly action: Reply; readonly call: StepCall },
): Promise<Transition> {
  const isRecall = (attempt: CallAttempt): boolean =>
    attempt.name === recall.definition.function.name
  const own = action.calls.filter(isRecall)
  if (own.length === 0) return await world.step(action, call)
  const answers = own.map(attempt => answerRecall(recall, attempt, call.turn))
  const rest = action.calls.filter(attempt => !isRecall(attempt))
  if (rest.length === 0) {
    const observed = answers.map(({ message }) => message)
    return {
      kind: 'continue',
      observed: nonEmpty(observed),
      calls: answers.map(({ record }) => record),
    }
  }
  const others = await world.step(withCalls(action, rest), call)
  return merge(action, answers, others)
}

interface Answer {
  readonly message: ToolMessage
  readonly record: CallRecord
}

function answerRecall(recall: Recall, attempt: CallAttempt, turn: number): Answer {
  const { name } = recall.definition.function
  const input = attempt.kind === 'parsed' ? (JSON.parse(attempt.arguments) as unknown) : attempt.raw
  const { content, problem } =
    attempt.kind === 'parsed' ? recall.answer(input) : malformed(attempt.problem)
  return {
    message: { role: 'tool', tool_call_id: attempt.id, name, content },
    record: {
      turn,
      id: attempt.id,
      tool: name,
      input,
      output: content,
      seconds: 0,
      ...(problem && { problem }),
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
