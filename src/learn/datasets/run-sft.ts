import { type Message, textOf } from '@espalier/text'
import type { Condenser } from '../../base/core/condenser.ts'
import type { Trajectory, View } from '../../base/core/trajectory.ts'
import { openRunReader } from '../../run/store/store.ts'
import type { Built, DatasetItem, DatasetRow } from './build.ts'
import { condenseOpening, contentKey, recallArguments, rejected } from './condensed-sft.ts'
import { neededBlocks } from './needed.ts'

/** Which stored trajectories are taken, and how their openings are condensed if they were not yet. */
export interface RunSftOptions {
  readonly condenser: Condenser
  /** The least reward. @default 1 */
  readonly least?: number
  /** Most blocks that one conversation recalls. @default 6 */
  readonly mostRecalls?: number
}

type Member = Awaited<ReturnType<typeof membersOf>>[number]

/** The trajectories of a run as conversations over condensed inputs. */
export async function* runSftItems(
  run: string,
  options: RunSftOptions,
): AsyncGenerator<DatasetItem> {
  await using reader = await openRunReader(run)
  for await (const { group } of reader.groups()) {
    for (const member of membersOf(group)) {
      yield { id: member.trajectory.id, build: call => fromMember(member, options, call) }
    }
  }
}

function membersOf(group: {
  readonly task: string
  readonly members: readonly {
    readonly trajectory: Trajectory
    readonly tree: { readonly tools: DatasetRow['example']['tools'] }
    readonly reward: { readonly total: number }
  }[]
}) {
  return group.members.map(({ trajectory, tree, reward }) => ({
    trajectory,
    task: group.task,
    tools: tree.tools ?? [],
    reward: reward.total,
  }))
}

async function fromMember(
  member: Member,
  { condenser, least = 1, mostRecalls = 6 }: RunSftOptions,
  call: { readonly signal: AbortSignal },
): Promise<Built> {
  const { trajectory, reward } = member
  const { outcome, messages, turns } = trajectory
  const views = condensedViews(trajectory)
  if (reward < least) return rejected('low-reward', String(reward))
  if (outcome.kind !== 'completed') return rejected('not-completed')
  const first = turns[0]
  if (!first) return rejected('nothing-said')
  if (views.length > 0) return { kind: 'kept', rows: pathRows(member) }
  const opened = await condenseOpening(messages.slice(0, first.messages), condenser, call)
  if ('kind' in opened) return opened
  const { shown, blocks, condensing, figures } = opened
  const said = messages.slice(first.messages)
  const spoken = said.flatMap(each => (each.role === 'assistant' ? [textOf(each.content)] : []))
  const needed = neededBlocks(blocks, shown, spoken.join(' '))
  if (needed.length > mostRecalls) return rejected('too-many-recalls', String(needed.length))
  const { definition } = condensing.recall!
  if (member.tools.some(tool => tool.function.name === definition.function.name)) {
    return rejected('tool-name-taken', definition.function.name)
  }
  const recalls = needed.flatMap(({ block }, index): readonly Message[] => {
    const [id, name] = [`call_recall_${index + 1}`, definition.function.name]
    const asked = { name, arguments: recallArguments(condensing, block.number) }
    return [
      {
        role: 'assistant',
        content: `I need block ${block.number} in full.`,
        tool_calls: [{ id, type: 'function', function: asked }],
      },
      { role: 'tool', tool_call_id: id, name, content: block.original },
    ]
  })
  const whole = untilReply([...shown, ...recalls, ...said])
  const notes = { reward, recalls: needed.length, blocks: figures.blocks ?? 0, from: 'rewritten' }
  return {
    kind: 'kept',
    rows: [toRow(member, whole, { notes, tools: [...member.tools, definition] })],
  }
}

/** A trajectory that was condensed while rolling is taken as the policy saw it: one row per path. */
function pathRows(member: Member): readonly DatasetRow[] {
  const { trajectory, reward, tools } = member
  const { messages } = trajectory
  const views = condensedViews(trajectory)
  const starts = views[0]!.turn === 0 ? views : [undefined, ...views]
  return starts.flatMap((view, index) => {
    const next = starts[index + 1]
    const shown = [...(view?.shown ?? []), ...messages.slice(view?.from ?? 0, next?.from)]
    const whole = untilReply(shown)
    // A path on which nothing was said teaches nothing.
    if (whole.length <= (view?.shown.length ?? 0)) return []
    const recalls = trajectory.events.filter(({ kind }) => kind === 'recalled').length
    const notes = { reward, recalls, path: index, from: 'shown' }
    return [toRow(member, whole, { notes, tools, part: index })]
  })
}

/** Examples of others are not the conversation's own, and are not learned from. */
function condensedViews({ views = [] }: Trajectory): readonly View[] {
  return views.filter(({ examples }) => !examples)
}

function untilReply(messages: readonly Message[]): readonly Message[] {
  return messages.slice(0, messages.findLastIndex(({ role }) => role === 'assistant') + 1)
}

function toRow(
  { trajectory, task }: Member,
  messages: readonly Message[],
  {
    notes,
    tools,
    part = 0,
  }: Pick<DatasetRow, 'notes'> & { readonly tools: Member['tools']; readonly part?: number },
): DatasetRow {
  return {
    id: part === 0 ? trajectory.id : `${trajectory.id}#${part}`,
    key: contentKey(messages),
    subject: task,
    example: { messages, ...(tools.length > 0 && { tools }) },
    notes,
  }
}
