import type { AssistantMessage, Message, ToolCall } from '@espalier/text'
import { dumps } from '@espalier/text/python'
import type { Speaker } from '../../../src/base/core/speaker.ts'
import { SimulatedUser } from '../../../src/engine/environments/users/simulated.ts'
import type { UserStrategy } from '../../../src/engine/environments/users/strategy.ts'
import { type AgentKind, type TauAgent, tauAgent } from '../../../src/worlds/tau/agents.ts'
import { userPrompts } from '../../../src/worlds/tau/prompts.ts'
import { toInfo } from '../../../src/worlds/tau/results.ts'
import type { TauTask } from '../../../src/worlds/tau/task.ts'
import { makeTauWorld } from '../../../src/worlds/tau/world.ts'
import { type Stepped, stepWithUser } from './replays.ts'
import {
  differ,
  firstOf,
  matchesText,
  type Problem,
  type TauRow,
  type TauSource,
  taskOf,
} from './source.ts'

export async function checkSimulation(row: TauRow, source: TauSource): Promise<Problem> {
  if (row.k === 'user') return await checkUser(row, source)
  if (row.k === 'agent') return await checkAgent(row, source)
  return `skipped: unknown kind ${row.k}`
}

const call = { signal: new AbortController().signal }

/** Constructing a user of the original holds this many rehearsals whose answers are thrown away. */
const REHEARSALS: Readonly<Record<string, number>> = { llm: 1, react: 2, verify: 1, reflection: 1 }

async function checkUser(row: TauRow, source: TauSource): Promise<Problem> {
  const sent: (readonly Message[])[] = []
  const speaker: Speaker = {
    name: 'scripted',
    say: async messages => {
      const content = row.replies[sent.length]
      sent.push(messages)
      return {
        message: { role: 'assistant', content },
        finish: 'stop',
        usage: { prompt: sent.length, sampled: 0 },
      }
    },
  }
  const { prompts } = await source.domain('retail')
  const user = new SimulatedUser(speaker, {
    strategy: row.strategy as UserStrategy,
    prompts: userPrompts(prompts),
    describeCandidate: text => `<<Message ${text}>>`,
  })
  const talk = await converse(user, row)
  return firstOf(
    differ('out', row.out, talk.out),
    differ('raised', row.raised, talk.raised),
    differ('calls_in_constructor', row.calls_in_constructor, talk.rehearsed),
    differ('calls', row.calls.length, sent.length),
    ...row.calls.map((wanted: TauRow, index: number) =>
      compareMessages(`call ${index}`, wanted.messages, sent[index] ?? []),
    ),
    compareMessages('final', row.final_messages, user.messages),
    differ('total_cost', row.total_cost, 0.001 * (user.spent.last?.prompt ?? 0)),
  )
}

async function converse(user: SimulatedUser, row: TauRow) {
  const out: (string | null)[] = []
  let rehearsed = 0
  let raised: { type: string; msg: string } | undefined
  try {
    for (let times = 0; times < (REHEARSALS[row.strategy] ?? 0); times++) {
      await user.open(undefined, call)
      rehearsed = user.usage.calls
    }
    out.push(await user.open(row.instruction ?? undefined, call))
    for (const content of row.contents) out.push(await user.answer(content, call))
  } catch (error) {
    raised = { type: (error as Error).name, msg: (error as Error).message }
  }
  return { out, rehearsed, raised }
}

function compareMessages(name: string, wanted: TauRow[], got: readonly Message[]): Problem {
  const problems = wanted.map((message, index) => {
    const ours = got[index]
    if (ours === undefined) return `${name}: message ${index} is missing`
    const content = ours.content as string | null
    return firstOf(
      differ(`${name} role ${index}`, message.role, ours.role),
      matchesText(message.content, content as string)
        ? undefined
        : differ(`${name} content ${index}`, message.content, content),
      differ(
        `${name} calls ${index}`,
        message.tool_calls ?? [],
        (ours as AssistantMessage).tool_calls ?? [],
      ),
    )
  })
  return firstOf(...problems, differ(`${name} length`, wanted.length, got.length))
}

/** The limit of steps of the original's agents. */
const STEPS = 30

async function checkAgent(row: TauRow, source: TauSource): Promise<Problem> {
  const domain = await source.domain(row.domain)
  const task = taskOf(domain, row.split ?? 'test', row.task)
  const kind = row.strategy as AgentKind
  const world = makeTauWorld(domain, task)
  const agents = kind === 'few-shot' ? orders(DISPLAYS) : [[]]
  const wanted = (row.messages ?? row.last_call?.messages)?.[0]?.content
  // The displays were drawn by Python's own random numbers, so any order of them will do.
  const agent = agents
    .map(fewShots => tauAgent(domain, { kind, fewShots }))
    .find(each => matchesText(wanted, each.system))
  if (agent === undefined) return 'the system prompt differs'
  const solved = solve(row, agent, action => stepWithUser(world, action))
  if (solved.raised) return compareRaised(row, solved)
  return firstOf(
    differ('raised', row.raised, undefined),
    differ('reward', row.reward, solved.last?.reward?.reward ?? 0),
    compareMessages('messages', row.messages, solved.messages),
    differ('n_calls', row.n_calls, solved.calls),
    compareInfo(row, solved, task),
    row.total_cost === null ? undefined : differ('total_cost', row.total_cost, solved.cost),
  )
}

const DISPLAYS = [0, 1, 2, 3, 4].map(index => `display ${index}`)

function orders(items: readonly string[]): readonly string[][] {
  if (items.length <= 1) return [[...items]]
  return items.flatMap((item, index) =>
    orders(items.toSpliced(index, 1)).map(rest => [item, ...rest]),
  )
}

interface Solved {
  messages: Message[]
  calls: number
  cost: number
  last: Stepped | undefined
  raised: { type: string; msg: string } | undefined
}

function solve(
  row: TauRow,
  agent: TauAgent,
  step: (action: ReturnType<TauAgent['toAction']>) => Stepped,
): Solved {
  const solved: Solved = { messages: [], calls: 0, cost: 0, last: undefined, raised: undefined }
  solved.messages.push(
    { role: 'system', content: agent.system },
    { role: 'user', content: 'hello' },
  )
  try {
    while (solved.calls < STEPS) {
      const message = toMessage(row.replies[solved.calls])
      solved.calls++
      solved.cost += 0.001 * solved.calls
      const action = agent.toAction(message)
      solved.last = step(action)
      const { observation } = solved.last
      solved.messages.push(...agent.observe({ message, action, observation }))
      if (solved.last.reward) break
    }
  } catch (error) {
    solved.raised = { type: (error as Error).name, msg: (error as Error).message }
  }
  return solved
}

function toMessage(reply: TauRow): AssistantMessage {
  if (typeof reply === 'string') return { role: 'assistant', content: reply }
  const calls = reply.tool_calls as ToolCall[] | null | undefined
  const message = { role: 'assistant', content: reply.content } as const
  return calls ? { ...message, tool_calls: calls } : message
}

/** The texts of pydantic depend on its version, so only their first line counts. */
function compareRaised(row: TauRow, { raised, calls, messages }: Solved): Problem {
  const summary = (problem: TauRow): unknown =>
    problem?.type === 'ValidationError' ? problem.msg.split('\n')[0] : problem
  return firstOf(
    differ('raised', summary(row.raised), summary(raised)),
    differ('n_calls', row.n_calls, calls),
    row.last_call ? compareMessages('last call', row.last_call.messages, messages) : undefined,
  )
}

function compareInfo(row: TauRow, { last }: Solved, task: TauTask): Problem {
  const done = last?.reward !== undefined
  const source = last?.source ?? 'user'
  const info = toInfo({ task, source, userCost: done ? 0 : undefined, reward: last?.reward })
  const keys = [...info.keys()]
  info.delete('task')
  return firstOf(
    differ('info_keys', row.info_keys, keys),
    differ('info', row.info, JSON.parse(dumps(info))),
  )
}
