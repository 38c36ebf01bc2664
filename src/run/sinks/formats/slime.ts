import type { Outcome } from '../../../base/core/outcome.ts'
import { isUnscored } from '../../rows/row-record.ts'
import type { CreditedRow } from '../credited-row.ts'
import { promptLength, splitByCredit } from '../credited-row.ts'
import { replayedExperts } from '../experts.ts'
import type { ExportGroup } from '../format.ts'
import { rowsFor, type Training } from '../forms.ts'
import { type ImageNaming, imageFiles } from '../images.ts'
import { answerOf, lineFormat } from '../line-format.ts'
import { makeTelling, numbered } from '../numbers.ts'

const training: Training = {
  form: 'paths',
  because: 'slime takes the samples of one rollout_id for a sequence, so each trajectory is one',
  sequence: 'trajectory',
  cuts: true,
  importance: 'rows',
}

/**
 * slime's `Sample.to_dict()`, one per line (slime/utils/types.py at 624b824, 2026-08-21). slime
 * computes advantages from rewards by position (`_post_process_rewards` in slime/ray/rollout.py),
 * right only if every group has the same number of samples; its documented way around that is
 * `--custom-reward-post-process-path`, and ours hands it `metadata.espalier.advantage`. Rows of one
 * trajectory share a `rollout_id`, which slime's loss counts once.
 */
export const slime = lineFormat({
  name: 'slime',
  summary: "slime's Sample, one per line, for --load-debug-rollout-data or generate_rollout",
  carries: ['tokens', 'advantages', 'rewards', 'outcomes', 'routed experts', 'images'],
  training,
  comparesRewards: true,
  start({ lost, volatile, imageFile, ...options }) {
    lost.note(
      'slime compares rewards by position and ignores our advantages, unless --custom-reward-post-process-path says so',
    )
    const trajectories = new Map<string, number>()
    let index = 0
    const telling = makeTelling(lost)
    const numberOf = (trajectory: string): number => {
      const known = trajectories.get(trajectory) ?? trajectories.size
      trajectories.set(trajectory, known)
      return known
    }
    return function* toSamples(source: ExportGroup) {
      for (const each of rowsFor({ name: 'slime', training }, source.group, {
        ...options,
        lost,
      })) {
        // slime decides by the first sample of a batch for all of them.
        const { member, numbers } = numbered(each, telling(each.tree))
        const parts = splitByCredit(member)
        lost.add('rows split because their tokens are worth different things', parts.length - 1)
        lost.add("texts of responses (slime's `response`): only tokens are written", parts.length)
        for (const part of parts) {
          const rolloutId = numberOf(member.row.trajectory.id)
          const told = { rolloutId, numbers, volatile, imageFile }
          yield toSample(source, part, { index: index++, ...told })
        }
      }
    }
  },
  loading: file => [
    `python integrations/python/espalier_slime.py ${file} rollout_{rollout_id}.pt --batch ROLLOUT_BATCH_SIZE`,
    'slime --load-debug-rollout-data rollout_{rollout_id}.pt \\',
    '  --custom-reward-post-process-path espalier_slime.post_process_rewards',
  ],
})

interface SampleNumbers extends ImageNaming {
  readonly index: number
  readonly rolloutId: number
  readonly numbers: Float32Array | null
  readonly volatile: boolean
}

function toSample(source: ExportGroup, part: CreditedRow, numbers: SampleNumbers): object {
  const { row, member, tree, mask, credit, isTrained } = part
  const { trajectory } = row
  const start = promptLength(part)
  const outcome = isUnscored(member) ? member.outcome : trajectory.outcome
  const { seconds, cached } = trajectory.volatile
  return {
    group_index: source.order,
    index: numbers.index,
    rollout_id: numbers.rolloutId,
    prompt: openingOf(trajectory.messages, trajectory.turns[0]?.messages),
    tokens: row.ids,
    response: '',
    response_length: row.ids.length - start,
    label: answerOf(source.task),
    reward: isUnscored(member) ? 0 : member.reward.total,
    loss_mask: mask.subarray(start),
    weight_versions: row.versions.map(({ value }) => String(value.to)),
    rollout_log_probs: numbers.numbers?.subarray(start) ?? null,
    // slime wants one row fewer than tokens, as the last token is never an input.
    ...(row.images && { multimodal_inputs: { images: imageFiles(row, numbers.imageFile) } }),
    ...(row.experts && {
      rollout_routed_experts: replayedExperts('slime', part, row.ids.length - 1),
    }),
    remove_sample: !isTrained,
    status: statusOf(outcome),
    metadata: {
      espalier: {
        group: source.group.id,
        tree: tree.id,
        trajectory: trajectory.id,
        row: row.index,
        rows: row.count,
        advantage: credit,
      },
    },
    session_id: tree.id,
    non_generation_time: numbers.volatile ? seconds.tools + seconds.environment : 0,
    spec_info: {},
    prefix_cache_info: numbers.volatile
      ? { cached_tokens: cached, total_prompt_tokens: trajectory.usage.prompt }
      : {},
  }
}

/** The messages before the policy first spoke. */
function openingOf<Message>(messages: readonly Message[], spoke: number | undefined) {
  return messages.slice(0, spoke ?? messages.length)
}

/** slime's `Sample.Status`; what a reward could be given to is completed or truncated there too. */
function statusOf(outcome: Outcome): string {
  return outcome.kind === 'failed' ? 'failed' : outcome.kind
}
