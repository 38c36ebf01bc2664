import type { Message } from '@espalier/text'
import { checkLengths, type Fields, openFields, ReadError } from '../fields.ts'
import { type FormatReader, type ReadPath, type ReadTrajectory, unknownParts } from '../reader.ts'
import { checkedMessage, outcomeIn } from './checked.ts'
import { idsOf } from './steps.ts'
import { joinSteps, type StepTokens } from './token-rows.ts'

/** Episodes of verifiers: a trace is a graph of messages, each with the tokens it adds. */
export const verifiersReader: FormatReader = {
  name: 'verifiers',
  kind: 'lines',
  async *read(records) {
    let member = 0
    for await (const episode of records) {
      const task = taskName(episode)
      for (const trace of episode.each('traces')) yield readTrace(trace, { task, member })
      member++
    }
  },
}

function taskName(episode: Fields): string {
  const task = episode.inner('task')
  if (task.has('key')) return task.text('key')
  const data = task.inner('data')
  return data.has('id') ? data.text('id') : String(data.value.idx ?? episode.value.id ?? 'task')
}

function readTrace(
  trace: Fields,
  { task, member }: { readonly task: string; readonly member: number },
): ReadTrajectory {
  const info = trace.inner('info')
  const known = info.has('espalier') ? info.inner('espalier') : undefined
  const own = known?.has('member') ? String(known.integer('member')) : String(member)
  const { paths, messages } = readGraph(trace)
  const data = trace.inner('task').inner('data')
  const rewards = rewardParts(trace)
  const advantages = trace.each('nodes').flatMap(node => advantagesOf(node))
  const isOk = trace.value.ok === true
  return {
    ...unknownParts,
    ...idsOf(trace.text('id'), { task, member: own }),
    data: data.value.data ?? data.value,
    paths,
    messages,
    tools: trace.each('tools').map(tool => ({
      type: 'function',
      function: {
        name: tool.text('name'),
        ...(tool.has('description') && { description: tool.text('description') }),
        parameters: tool.inner('parameters').value,
      },
    })),
    reward: isOk
      ? { total: rewards.reduce((sum, each) => sum + each.score * each.weight, 0), parts: rewards }
      : null,
    advantage: advantages.find(value => value !== 0) ?? (advantages.length > 0 ? 0 : null),
    outcome: known?.has('outcome')
      ? outcomeIn(known, 'outcome')
      : isOk
        ? { kind: 'completed' }
        : { kind: 'failed', boundary: 'environment', message: 'failed in the run it came from' },
  }
}

function rewardParts(trace: Fields) {
  const rewards = trace.inner('rewards')
  return Object.keys(rewards.value)
    .filter(name => rewards.has(name))
    .map(name => {
      const part = rewards.inner(name)
      return { name, score: part.number('score'), weight: part.numberOrNull('weight') ?? 1 }
    })
}

function advantagesOf(node: Fields): readonly number[] {
  return node.has('advantages') ? [...node.doubles('advantages')] : []
}

interface Graph {
  readonly paths: readonly ReadPath[]
  readonly messages: readonly Message[]
}

/** Walks from every leaf to its root: each such path is a sequence, in the order of leaves. */
function readGraph(trace: Fields): Graph {
  const nodes = trace.each('nodes')
  const parents = nodes.map((node, index) => parentOf(node, index))
  const isParent = new Set(parents)
  const leaves = nodes.map((_, index) => index).filter(index => !isParent.has(index))
  const branches = leaves.map(leaf => {
    const branch: number[] = []
    for (let at: number | null = leaf; at !== null; at = parents[at]!) branch.push(at)
    return branch.reverse()
  })
  const steps = branches.flatMap(branch => stepsOf(branch.map(index => nodes[index]!)))
  const spoken = branches.flatMap((branch, number) =>
    branch.map(index => nodes[index]!).filter(node => number === 0 || node.value.sampled === true),
  )
  return { paths: joinSteps(steps), messages: spoken.map(node => toMessage(node.inner('message'))) }
}

function parentOf(node: Fields, index: number): number | null {
  if (!node.has('parent')) return null
  const parent = node.integer('parent')
  if (parent >= 0 && parent < index) return parent
  throw new ReadError(`${node.place}: parent ${parent} does not come before it`)
}

/** What the policy was given and sampled, call by call, along one path. */
function stepsOf(branch: readonly Fields[]): readonly StepTokens[] {
  const parts = branch.map(node => node.ids('token_ids'))
  const path = new Int32Array(parts.reduce((sum, ids) => sum + ids.length, 0))
  const steps: StepTokens[] = []
  let read = 0
  branch.forEach((node, index) => {
    const ids = parts[index]!
    path.set(ids, read)
    if (node.value.sampled === true) {
      const mask = node.bits('mask')
      checkLengths(node.place, { token_ids: ids, mask })
      const start = Math.max(0, mask.indexOf(1))
      const logprobs = node.has('logprobs') ? node.logprobs('logprobs') : new Float32Array(0)
      const advantages = node.has('advantages') ? spread(mask, node.doubles('advantages')) : null
      steps.push({
        ...(advantages && { advantages: advantages.slice(start) }),
        prompt: path.subarray(0, read + start),
        response: ids.subarray(start),
        // Only trained tokens have log-probabilities, so a partly trained turn has too few.
        ...(logprobs.length === ids.length - start && { logprobs }),
      })
    }
    read += ids.length
  })
  return steps
}

/** Numbers of the trained tokens, and 0 for the others. */
function spread(mask: Uint8Array, values: Float64Array): readonly number[] {
  let read = 0
  return Array.from(mask, bit => (bit === 1 ? (values[read++] ?? 0) : 0))
}

function toMessage(message: Fields): Message {
  if (message.text('role') !== 'assistant' || !message.has('tool_calls'))
    return checkedMessage(message)
  const calls = message.each('tool_calls').map(call => ({
    id: call.text('id'),
    type: 'function' as const,
    function: { name: call.text('name'), arguments: call.text('arguments') },
  }))
  return checkedMessage(openFields({ ...message.value, tool_calls: calls }, message.place))
}
