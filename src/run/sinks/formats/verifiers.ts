import type { Message } from '@espalier/text'
import { textOf } from '@espalier/text'
import type { Outcome } from '../../../base/core/outcome.ts'
import type { Tree } from '../../../base/core/tree.ts'
import { isUnscored } from '../../rows/row-record.ts'
import { type Conversation, conversationsOf, unknownTokens } from '../conversations.ts'
import type { ExportGroup, FormatOptions } from '../format.ts'
import { checkForm, type Training, unknownWords } from '../forms.ts'
import { lineFormat } from '../line-format.ts'
import { makeTelling } from '../numbers.ts'
import type { TurnTokens } from '../turns.ts'

const training: Training = {
  form: 'paths',
  because: 'prime-rl makes a row of every branch',
  sequence: 'row',
}

/**
 * Episodes as verifiers keeps them in `traces.jsonl` (verifiers/v1/trace.py, graph.py and episode.py
 * of verifiers 0.4): one episode per tree, one trace per trajectory, one node per message with the
 * tokens it adds. `mask` and `advantages` say token by token what is trained; prime-rl reads both
 * from the nodes. In the form `once`, a token that trajectories share is trained in one of them.
 */
export const verifiers = lineFormat({
  name: 'verifiers',
  summary: 'Episodes of verifiers (traces.jsonl) with tokens, masks and advantages per message',
  carries: [
    'tokens',
    'advantages',
    'rewards',
    'reward parts',
    'messages',
    'tools',
    'outcomes',
    'fidelity',
  ],
  training,
  start: options => {
    const telling = makeTelling(options.lost, 'verifiers')
    return source => {
      for (const { tree } of [...source.group.members, ...source.group.unscored]) telling(tree)
      return toEpisodes(source, options)
    }
  },
  loading: file => [
    'python:  from verifiers.v1.episode import WireEpisode',
    `         episodes = [WireEpisode.model_validate_json(line) for line in open(${JSON.stringify(file)})]`,
  ],
})

function toEpisodes(source: ExportGroup, options: FormatOptions): readonly object[] {
  checkForm({ name: 'verifiers', training }, source.group, options)
  const conversations = conversationsOf(source.group, options)
  const trees = [...new Set(conversations.map(({ tree }) => tree))]
  const { group } = source
  return trees.map(tree => {
    const own = conversations.filter(each => each.tree === tree)
    return {
      id: tree.id,
      env: { id: options.run },
      task: taskOf(source),
      group: { id: group.id },
      run: runOf(tree, { run: options.run, step: group.step ?? 0 }),
      ok: own.every(({ member }) => !isUnscored(member)),
      errors: own.flatMap(({ member }) => (isUnscored(member) ? [errorOf(member.outcome)] : [])),
      traces: own.map(each => toTrace(source, each, options)),
    }
  })
}

function taskOf({ task, group }: ExportGroup): object {
  return { type: 'Task', data: { id: group.task, data: task.data }, key: group.task }
}

function runOf(tree: Tree, { run, step }: { readonly run: string; readonly step: number }): object {
  const versions = tree.nodes.flatMap(({ segment }) =>
    segment.origin === 'sampled' ? [segment.version] : [],
  )
  const start = Math.min(...versions.map(({ from }) => from))
  const end = Math.max(...versions.map(({ to }) => to))
  const policy = versions.length > 0 ? { policy: { start, end } } : {}
  return { type: 'train', id: run, work: { type: 'train', step, ...policy } }
}

function errorOf(outcome: Outcome): object {
  return outcome.kind === 'failed'
    ? { type: outcome.boundary, message: outcome.message }
    : { type: outcome.kind, message: 'by' in outcome ? outcome.by : '' }
}

function toTrace(source: ExportGroup, conversation: Conversation, { lost }: FormatOptions): object {
  const { member, tree } = conversation
  const { trajectory } = member
  const outcome = isUnscored(member) ? member.outcome : trajectory.outcome
  const { nodes, calls } = toGraph(conversation)
  lost.add('messages of contexts after a rewrite: only their tokens', conversation.paths - 1)
  lost.add(unknownWords, unknownTokens([conversation]))
  return {
    version: 1,
    id: trajectory.id,
    verifiers: { version: '0.4.0' },
    task: taskOf(source),
    agent: { config: {}, name: 'policy', trainable: true },
    tools: tree.tools.map(({ function: { name, description, parameters } }) => ({
      name,
      ...(description !== undefined && { description }),
      parameters,
    })),
    nodes,
    calls,
    rewards: rewardsOf(conversation),
    metrics: {},
    info: { espalier: { outcome, fidelity: trajectory.fidelity, member: tree.member } },
    is_completed: true,
    ok: !isUnscored(member),
    stop_condition: stopCondition(outcome),
    errors: isUnscored(member) ? [errorOf(outcome)] : [],
  }
}

function rewardsOf({ member }: Conversation): object {
  if (isUnscored(member)) return {}
  const { total, parts } = member.reward
  if (parts.length === 0) return { reward: { score: total, weight: 1 } }
  return Object.fromEntries(parts.map(({ name, score, weight }) => [name, { score, weight }]))
}

/** verifiers' own names of limits; only those count as truncation there. */
function stopCondition(outcome: Outcome): string | null {
  if (outcome.kind === 'failed' || outcome.kind === 'aborted') return 'error'
  if (outcome.kind === 'completed') return 'agent_completed'
  const names: Readonly<Record<string, string>> = {
    turns: 'max_turns',
    tokens: 'max_output_tokens',
    context: 'context_length',
  }
  return names[outcome.limit] ?? outcome.limit
}

interface Graph {
  readonly nodes: object[]
  readonly calls: object[]
}

/** The message graph: a chain of nodes for each path, every node with the tokens it adds. */
function toGraph(conversation: Conversation): Graph {
  const graph: Graph = { nodes: [], calls: [] }
  for (let path = 0; path < conversation.paths; path++) addPath(graph, conversation, path)
  return graph
}

function addPath(graph: Graph, conversation: Conversation, path: number): void {
  const turns = conversation.turns.filter(turn => turn.path === path)
  let parent: number | null = null
  let said = turns[0]?.turn.messages ?? 0
  let read = 0
  const add = (node: object): number => {
    graph.nodes.push({ parent, ...node })
    parent = graph.nodes.length - 1
    return parent
  }
  if (path === 0) said = 0
  for (const turn of turns) {
    const given = conversation.messages.slice(said, turn.turn.messages)
    const context = turn.pathIds.subarray(read, turn.start)
    // The messages of a rewritten context are not stored; its tokens get a message of their own.
    const messages = path > 0 && read === 0 ? [rewritten] : given
    messages.forEach((message, index) => {
      const isLast = index === messages.length - 1
      add(givenNode(message, isLast ? context : context.subarray(0, 0)))
    })
    const scaffold = messages.length > 0 ? context.subarray(0, 0) : context
    const node = add(sampledNode(conversation, turn, scaffold))
    graph.calls.push(callOf(turn, node))
    said = turn.turn.messages + 1
    read = turn.end
  }
}

const rewritten: Message = { role: 'user', content: '[the context was rewritten here]' }

function givenNode(message: Message, ids: Int32Array): object {
  const mask = Array.from({ length: ids.length }, () => false)
  return { message: toNodeMessage(message), sampled: false, timestamp: 0, token_ids: ids, mask }
}

function sampledNode(conversation: Conversation, turn: TurnTokens, scaffold: Int32Array): object {
  const { pathIds, start, end, mask, logprobs, credit } = turn
  const message = conversation.messages[turn.turn.messages]
  const trained = mask.map((bit, token) => (Number.isNaN(logprobs[token]!) ? 0 : bit))
  const isTrained = (_: number, token: number): boolean => trained[token] === 1
  return {
    message: message?.role === 'assistant' ? toNodeMessage(message) : { role: 'assistant' },
    sampled: true,
    timestamp: 0,
    token_ids: pathIds.subarray(start - scaffold.length, end),
    mask: [...scaffold].map(() => false).concat([...trained].map(bit => bit === 1)),
    logprobs: logprobs.filter(isTrained),
    advantages: credit.filter(isTrained),
  }
}

function callOf({ turn, start, end }: TurnTokens, node: number): object {
  return {
    node,
    finish_reason: turn.finish.kind === 'length' ? 'length' : 'stop',
    usage: { prompt_tokens: start, completion_tokens: end - start },
    time: { start: 0, end: 0 },
  }
}

/** A message with verifiers' flat calls; instructions of a developer are the system's there. */
function toNodeMessage(message: Message): object {
  if (message.role === 'developer') return { ...message, role: 'system' }
  if (message.role !== 'assistant') return message
  return {
    ...message,
    content: message.content === null ? null : textOf(message.content),
    ...(message.tool_calls && {
      tool_calls: message.tool_calls.map(({ id, function: { name, arguments: text } }) => ({
        id,
        name,
        arguments: text,
      })),
    }),
  }
}
