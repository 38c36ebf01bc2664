import { type Conversation, conversationsOf, rewardOf, withoutReasoning } from '../conversations.ts'
import type { ExportGroup, Format } from '../format.ts'
import { openJsonBytes, writeJson } from '../json-bytes.ts'
import { isUnscored } from '../row-record.ts'

/**
 * tau-bench's results: one JSON array of runs (tau_bench/run.py and types.py). Task ids are numbers
 * there; other ids count from 0 in the order of the run, and the id itself is kept in `info`.
 */
export const tauBench: Format = {
  name: 'tau-bench',
  summary: "tau-bench's results: one JSON array of conversations with rewards and trials",
  carries: ['rewards', 'reward parts', 'messages'],
  open(output, options) {
    const json = openJsonBytes()
    let isFirst = true
    return {
      async write(source) {
        const conversations = conversationsOf(source.group, options)
        for (const conversation of conversations) {
          json.raw(isFirst ? '[\n' : ',\n')
          isFirst = false
          const { member, tree, messages } = conversation
          writeJson(json, {
            task_id: taskNumber(source),
            reward: rewardOf(conversation) ?? 0,
            info: {
              task: source.task.data,
              source: reported(conversation, 'source') ?? source.group.task,
              // The benchmark's own world reports what its reward came from.
              reward_info: reported(conversation, 'reward_info') ?? rewardInfo(conversation),
              ...(isUnscored(member) && { error: member.outcome }),
            },
            traj: isUnscored(member) ? [] : messages.map(withoutReasoning),
            trial: tree.member,
          })
          await output.write(new Uint8Array(json.take()))
        }
        return conversations.length
      },
      async end() {
        await output.write(isFirst ? '[]\n' : '\n]\n')
      },
    }
  },
  loading: file => [`python:  results = json.load(open(${JSON.stringify(file)}))`],
}

function taskNumber({ group, order }: ExportGroup): number {
  return /^\d{1,15}$/.test(group.task) ? Number(group.task) : order
}

/** A field of the world's report, where it has one. */
function reported({ member }: Conversation, field: string): unknown {
  const { report } = member.trajectory
  if (typeof report !== 'object' || report === null || Array.isArray(report)) return undefined
  return (report as Readonly<Record<string, unknown>>)[field]
}

function rewardInfo({ member }: Conversation): object {
  if (isUnscored(member)) return {}
  const { total, parts } = member.reward
  return { reward: total, info: { parts }, actions: [] }
}
