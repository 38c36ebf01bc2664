import type { PythonValue } from '@espalier/text/python'
import { dumps, parseJson } from '@espalier/text/python'
import { taskWorld } from '../../../src/worlds/tau2/evaluate.ts'
import type { SpokenMessage, Tau2Message, Tau2ToolCall } from '../../../src/worlds/tau2/message.ts'
import { agentView, Orchestrator, userView } from '../../../src/worlds/tau2/orchestrator.ts'
import {
  type Dict,
  PythonError,
  plain,
  type Value,
} from '../../../src/worlds/tau2/program/values.ts'
import { advertised } from '../../../src/worlds/tau2/schema.ts'
import type { Requestor } from '../../../src/worlds/tau2/task.ts'
import { userToolNames } from '../../../src/worlds/tau2/user.ts'
import {
  argumentsOf,
  differ,
  firstOf,
  type Problem,
  sha256,
  type Tau2Row,
  type Tau2Source,
} from './source.ts'

/** Plays a scripted conversation and compares every message, every prompt and how it ended. */
export function checkConversation(row: Tau2Row, text: string, source: Tau2Source): Problem {
  const missing = source.lacks(row.domain)
  if (missing !== undefined) return `skipped: ${missing}`
  const player = new Player(withArguments(row, parseJson(text) as Dict), source)
  const out = player.play()
  const problem = firstOf(
    row.out.raised
      ? differ('raised', [row.out.raised, row.out.msg], [out.raised, out.msg])
      : undefined,
    ...Object.keys(out).map(key =>
      key === 'msg' || key === 'raised' ? undefined : differ(key, row.out[key], out[key]),
    ),
    differ('model calls', row.model_calls, player.calls),
    differ('left', row.left, player.left),
    differ('hashes', [row.db_hash, row.user_db_hash], player.hashes()),
  )
  return problem && `${row.name} ${row.domain} ${row.task}: ${problem}`
}

/** The row with the arguments of its calls as Python has them. */
function withArguments(row: Tau2Row, exact: Dict): Tau2Row {
  const replies = (side: string): Tau2Row[] =>
    row[side].map((reply: Tau2Row, at: number) => {
      const calls = ((exact.get(side) as Value[])[at] as Dict).get('calls') as Value[][] | undefined
      return calls ? { ...reply, calls } : reply
    })
  const history = (exact.get('history') as Dict[] | undefined)?.map((message, at) => {
    const tool_calls = message.get('tool_calls')
    return tool_calls ? { ...row.history[at], tool_calls } : row.history[at]
  })
  return { ...row, agent: replies('agent'), user: replies('user'), ...(history && { history }) }
}

class Player {
  readonly calls: unknown[] = []
  readonly #row: Tau2Row
  readonly #orchestrator: Orchestrator
  readonly #systems: { readonly agent: string; readonly user: string }
  readonly #tools: { readonly agent: number; readonly user: number }
  readonly #scripts: { readonly agent: Tau2Row[]; readonly user: Tau2Row[] }

  constructor(row: Tau2Row, source: Tau2Source) {
    const domain = source.domain(row.domain)
    const task = source.task(row.domain, row.task)
    const { max_steps, max_errors, validate_communication } = row.opts
    this.#row = row
    this.#orchestrator = new Orchestrator(taskWorld(domain, task, { solo: row.solo }), {
      ...(max_steps !== undefined && { maxSteps: max_steps }),
      ...(max_errors !== undefined && { maxErrors: max_errors }),
      ...(validate_communication !== undefined && {
        validateCommunication: validate_communication,
      }),
    })
    const tools = userToolNames(domain, task)
    const policy = domain.policy({ solo: row.solo, task })
    this.#systems = {
      agent: row.solo ? source.prompts.soloAgent(policy, task) : source.prompts.agent(policy),
      user: source.prompts.user(task.scenario, { hasTools: tools !== null }),
    }
    const own = advertised(domain.agent).length
    const theirs = domain.user ? advertised(domain.user).length : 0
    this.#tools = { agent: row.solo ? own + theirs + 1 : own, user: tools?.length ?? 0 }
    this.#scripts = { agent: [...row.agent], user: [...row.user] }
  }

  get left(): readonly number[] {
    return [this.#scripts.agent.length, this.#scripts.user.length]
  }

  hashes(): readonly (string | null)[] {
    const { world } = this.#orchestrator
    return [world.hash(), world.userHash()]
  }

  play(): Tau2Row {
    const orchestrator = this.#orchestrator
    const ended = { steps: 0, num_errors: 0 }
    try {
      orchestrator.begin((this.#row.history ?? []).map(readMessage))
      while (orchestrator.termination === null) this.#step()
    } catch (error) {
      if (!(error instanceof PythonError)) throw error
      Object.assign(ended, { raised: error.type, msg: error.message, termination_reason: null })
    }
    Object.assign(ended, { steps: orchestrator.steps, num_errors: orchestrator.errors })
    if ('raised' in ended) return ended
    const { agent, user } = orchestrator.costs()
    return {
      ...ended,
      termination_reason: orchestrator.termination,
      messages: orchestrator.messages.map((message, index) => ({
        ...JSON.parse(dumps(simplified(message))),
        turn_idx: index,
      })),
      agent_cost: agent,
      user_cost: user,
    }
  }

  #step(): void {
    const orchestrator = this.#orchestrator
    if (orchestrator.turn === 'env') orchestrator.runTools()
    else if (orchestrator.turn === 'user')
      orchestrator.takeUser(this.#ask('user', userView(orchestrator.messages)))
    else orchestrator.takeAgent(this.#ask('agent', agentView(orchestrator.messages)))
  }

  #ask(who: 'agent' | 'user', view: readonly Tau2Message[]): SpokenMessage {
    const sent: Tau2Message[] = [{ role: 'system', content: this.#systems[who] }, ...view]
    const hash = sha256(dumps(sent.map(simplified)))
    this.calls.push([
      who,
      sent.length,
      sent.slice(-3).map(({ role }) => role),
      hash,
      this.#tools[who],
    ])
    const reply = this.#scripts[who].shift()
    if (reply === undefined) throw new PythonError('RuntimeError', 'script exhausted')
    return readReply(reply, who, this.calls.length)
  }
}

function readReply(reply: Tau2Row, who: 'agent' | 'user', count: number): SpokenMessage {
  const requestor: Requestor = who === 'user' ? 'user' : 'assistant'
  const calls = reply.calls?.map(
    ([name, given]: Tau2Row, index: number): Tau2ToolCall => ({
      id: `${who === 'user' ? 'u' : 'a'}${count}_${index}`,
      name,
      arguments: typeof given === 'string' ? argumentsOf(given) : given,
      requestor,
    }),
  )
  const cost = reply.cost === undefined ? 0.01 : reply.cost
  return { role: requestor, content: reply.t ?? null, tool_calls: calls ?? null, cost }
}

function readMessage(message: Tau2Row): Tau2Message {
  if (message.role === 'tool') {
    const { id, content, requestor, error } = message
    return { role: 'tool', id, content, requestor, error }
  }
  const tool_calls = message.tool_calls?.map(([id, name, given, requestor]: Tau2Row) => ({
    id,
    name,
    arguments: given,
    requestor,
  }))
  return { role: message.role, content: message.content, tool_calls: tool_calls ?? null, cost: 0 }
}

/** A message as the golden rows keep it. */
function simplified(message: Tau2Message): PythonValue {
  const pairs: [string, PythonValue][] = [
    ['role', message.role],
    ['content', message.content],
  ]
  if (message.role === 'tool')
    pairs.push(['id', message.id], ['requestor', message.requestor], ['error', message.error])
  else if (message.role !== 'system' && message.tool_calls !== null) {
    pairs.push([
      'tool_calls',
      message.tool_calls.map(call => [call.id, call.name, plain(call.arguments), call.requestor]),
    ])
  }
  return new Map(pairs)
}
