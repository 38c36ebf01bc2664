import type { Group } from '../../base/core/group.ts'
import type { RollParts } from '../../run/run/roll-groups.ts'
import type { Format } from '../../run/sinks/format.ts'
import { makeLossReport } from '../../run/sinks/lost.ts'
import { makeSelection } from '../../run/sinks/selection.ts'
import { failuresOf } from './group-failures.ts'
import type { FinishedGroup } from './rollouts-api.ts'
import type { RolloutJob } from './rollouts-entry.ts'

/** Weighs a group for the trainer of a format. */
export type WeighFor = (group: Group, format: Format) => Group

interface Answering {
  readonly format: Format
  readonly parts: RollParts
  readonly weigh: WeighFor | undefined
}

/** A finished group as clients get it, its rows in the format they asked for. */
export async function groupToAnswer(
  rolled: Group,
  { task, index }: RolloutJob,
  { format, parts, weigh }: Answering,
): Promise<Omit<FinishedGroup, 'cursor'>> {
  const group = weigh ? weigh(rolled, format) : rolled
  const chunks: string[] = []
  const output = {
    write: (chunk: string | Uint8Array) => void chunks.push(Buffer.from(chunk).toString()),
  }
  const writer = format.open(output, {
    run: 'rollouts',
    weighting: parts.weighting ?? 'uniform',
    form: format.training?.form ?? 'once',
    loss: 'ppo',
    volatile: true,
    lost: makeLossReport(),
  })
  const select = makeSelection({}, { comparesRewards: format.comparesRewards ?? false })
  await writer.write({ group: select(group).group, task, order: index })
  const rows = chunks.join('').split('\n')
  return {
    group: group.id,
    task: group.task,
    index,
    ...(group.seat !== undefined && { seat: group.seat }),
    ...(group.step !== undefined && { step: group.step }),
    rewards: group.members.map(({ reward }) => reward.total),
    failed: group.unscored.length,
    failures: failuresOf(group),
    dropped: group.members.filter(({ dropped }) => dropped !== null).length,
    rows: rows.filter(line => line !== '').map(line => JSON.parse(line) as Record<string, unknown>),
  }
}
