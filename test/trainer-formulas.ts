// What trainers compute from the rows they read, written from their sources for the tests: which
// advantage ends up on which token. A token is named by all ids up to and including it.

/** Advantage times weight by token. */
export type TokenCredit = Map<string, number>

type Line = Readonly<Record<string, unknown>>

/** The largest difference between two credits; a missing token counts as 0. */
export function creditDifference(a: TokenCredit, b: TokenCredit): number {
  const keys = new Set([...a.keys(), ...b.keys()])
  return [...keys].reduce(
    (most, key) => Math.max(most, Math.abs((a.get(key) ?? 0) - (b.get(key) ?? 0))),
    0,
  )
}

/** Adds credit to a token; a token that is trained twice adds up, so that it shows. */
export function addCredit(credit: TokenCredit, ids: readonly number[], values: readonly number[]) {
  for (let token = 0; token < ids.length; token++) {
    const value = values[token]!
    if (value === 0) continue
    const key = ids.slice(0, token + 1).join()
    credit.set(key, (credit.get(key) ?? 0) + value)
  }
}

const numbers = (value: unknown): number[] => value as number[]
const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length

function deviation(values: readonly number[], less: number): number {
  const centre = mean(values)
  const sum = values.reduce((total, value) => total + (value - centre) ** 2, 0)
  return Math.sqrt(sum / (values.length - less))
}

/**
 * slime/ray/rollout.py `_post_process_rewards` and loss.py `compute_advantages_and_returns` at
 * 624b824: group rewards by position, one advantage for all tokens of the loss mask.
 */
export function slimeByPosition(samples: readonly Line[], perPrompt: number): TokenCredit {
  const rewards = samples.map(({ reward }) => reward as number)
  return slimeCredit(
    samples,
    samples.map((_, index) => {
      const start = Math.floor(index / perPrompt) * perPrompt
      const group = rewards.slice(start, start + perPrompt)
      return (rewards[index]! - mean(group)) / (deviation(group, 1) + 1e-6)
    }),
  )
}

/** The same with `--custom-reward-post-process-path espalier_slime.post_process_rewards`. */
export function slimeByMetadata(samples: readonly Line[]): TokenCredit {
  return slimeCredit(
    samples,
    samples.map(
      ({ metadata }) => (metadata as { espalier: { advantage: number } }).espalier.advantage,
    ),
  )
}

function slimeCredit(samples: readonly Line[], rewards: readonly number[]): TokenCredit {
  const credit: TokenCredit = new Map()
  samples.forEach((sample, index) => {
    const tokens = numbers(sample.tokens)
    const mask = sample.remove_sample ? [] : numbers(sample.loss_mask)
    const context = tokens.length - (sample.response_length as number)
    const values = tokens.map((_, token) => (mask[token - context] ?? 0) * rewards[index]!)
    addCredit(credit, tokens, values)
  })
  return credit
}

/**
 * verl/trainer/ppo/core_algos.py `compute_grpo_outcome_advantage` at b178a3c: scores summed over a
 * row, compared within a `uid`.
 */
export function verlGrpo(outputs: readonly Line[]): TokenCredit {
  const scoreOf = (output: Line): number =>
    numbers(output.token_level_scores).reduce((sum, value) => sum + value, 0)
  return verlCredit(outputs, output => {
    const scores = outputs.filter(({ uid }) => uid === output.uid).map(scoreOf)
    const value = (scoreOf(output) - mean(scores)) / (deviation(scores, 1) + 1e-6)
    return numbers(output.response_mask).map(bit => bit * value)
  })
}

/** The estimator that `espalier_verl` registers: our advantages as they are. */
export function verlEspalier(outputs: readonly Line[]): TokenCredit {
  return verlCredit(outputs, output => {
    const mask = numbers(output.response_mask)
    return numbers(output.advantages).map((value, token) => value * mask[token]!)
  })
}

function verlCredit(outputs: readonly Line[], advantages: (output: Line) => number[]): TokenCredit {
  const credit: TokenCredit = new Map()
  for (const output of outputs) {
    const prompt = numbers(output.prompt_ids)
    const values = [...prompt.map(() => 0), ...advantages(output)]
    addCredit(credit, [...prompt, ...numbers(output.response_ids)], values)
  }
  return credit
}

/** trl/trainer/grpo_trainer.py 1.10: rewards by position, `num_generations` at a time. */
export function trlByPosition(rows: readonly Line[], generations: number): TokenCredit {
  const rewards = rows.map(({ reward }) => reward as number)
  return trlCredit(rows, (_, index) => {
    const start = Math.floor(index / generations) * generations
    const group = rewards.slice(start, start + generations)
    return (rewards[index]! - mean(group)) / (deviation(group, 1) + 1e-4)
  })
}

/** trl/experimental/async_grpo 1.10: the advantage of a `RolloutSample`, on its completion mask. */
export function trlAsync(rows: readonly Line[]): TokenCredit {
  return trlCredit(rows, ({ advantage }) => advantage as number)
}

function trlCredit(
  rows: readonly Line[],
  advantage: (row: Line, index: number) => number,
): TokenCredit {
  const credit: TokenCredit = new Map()
  rows.forEach((row, index) => {
    const prompt = numbers(row.prompt_ids)
    const values = numbers(row.env_mask).map(bit => bit * advantage(row, index))
    addCredit(
      credit,
      [...prompt, ...numbers(row.completion_ids)],
      [...prompt.map(() => 0), ...values],
    )
  })
  return credit
}

/**
 * skyrl/train/trainer.py `compute_advantages_and_returns` at a956457, step-wise: GRPO over the last
 * steps, each trajectory's advantage on all its steps.
 */
export function skyrlStepWise(entries: readonly Line[]): TokenCredit {
  const last = entries.filter(({ is_last_step }) => is_last_step === true)
  const uid = (entry: Line): string => (entry.trajectory_id as { instance_id: string }).instance_id
  const advantages = last.map(entry => {
    const scores = last.filter(other => uid(other) === uid(entry)).map(e => e.reward as number)
    return ((entry.reward as number) - mean(scores)) / (deviation(scores, 1) + 1e-6)
  })
  const credit: TokenCredit = new Map()
  let trajectory = 0
  for (const entry of entries) {
    const prompt = numbers(entry.prompt_token_ids)
    const values = numbers(entry.loss_mask).map(bit => bit * advantages[trajectory]!)
    addCredit(
      credit,
      [...prompt, ...numbers(entry.response_ids)],
      [...prompt.map(() => 0), ...values],
    )
    if (entry.is_last_step === true) trajectory++
  }
  return credit
}

/** rllm/trainer/algorithms/advantage.py at 9beb6e0 with `use_precomputed_advantage`. */
export function rllmPrecomputed(episodes: readonly Line[]): TokenCredit {
  const credit: TokenCredit = new Map()
  for (const episode of episodes) {
    for (const { steps } of episode.trajectories as readonly { steps: readonly Line[] }[]) {
      for (const step of steps) {
        const prompt = numbers(step.prompt_ids)
        addCredit(
          credit,
          [...prompt, ...numbers(step.response_ids)],
          [...prompt.map(() => 0), ...numbers(step.advantage)],
        )
      }
    }
  }
  return credit
}

interface VerifiersNode {
  readonly parent: number | null
  readonly token_ids: readonly number[]
  readonly mask: readonly boolean[]
  readonly advantages?: readonly number[]
}

/** verifiers/v1/trace.py 0.4 `Branch.token_ids` and `Branch.advantages`: one row per leaf. */
export function verifiersBranches(episodes: readonly Line[]): TokenCredit {
  const credit: TokenCredit = new Map()
  const traces = episodes.flatMap(({ traces }) => traces as readonly { nodes: VerifiersNode[] }[])
  for (const { nodes } of traces) {
    const parents = new Set(nodes.map(({ parent }) => parent))
    nodes.forEach((_, leaf) => {
      if (parents.has(leaf)) return
      const path: VerifiersNode[] = []
      for (let at: number | null = leaf; at !== null; at = nodes[at]!.parent) path.push(nodes[at]!)
      path.reverse()
      const values = path.flatMap(({ mask, advantages = [] }) => {
        let next = 0
        return mask.map(isSampled => (isSampled ? (advantages[next++] ?? 0) : 0))
      })
      addCredit(
        credit,
        path.flatMap(node => node.token_ids),
        values,
      )
    })
  }
  return credit
}

/** Tinker's importance_sampling and ppo: a sum over targets, each with its advantage. */
export function tinkerSum(data: readonly Line[]): TokenCredit {
  const credit: TokenCredit = new Map()
  for (const datum of data) {
    const { chunks } = datum.model_input as { chunks: readonly { tokens: readonly number[] }[] }
    const inputs = datum.loss_fn_inputs as Record<string, { data: readonly number[] }>
    const targets = inputs.target_tokens!.data
    addCredit(
      credit,
      [...chunks.flatMap(({ tokens }) => tokens).slice(0, 1), ...targets],
      [0, ...inputs.advantages!.data],
    )
  }
  return credit
}

/** art/preprocessing/tokenize.py 0.5 `tokenize_trajectory_groups`: the deviation of a population. */
export function artAdvantages(group: Line): readonly number[] {
  const rewards = (group.trajectories as readonly Line[]).map(({ reward }) => reward as number)
  const spread = deviation(rewards, 0)
  return rewards.map(reward => (spread === 0 ? 0 : (reward - mean(rewards)) / (spread + 1e-6)))
}
