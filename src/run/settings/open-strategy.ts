import type { Renderer } from '@espalier/text'
import type { Environment } from '../../base/core/environment.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { isAgent, usualStrategy } from '../../engine/capture/agent.ts'
import { withFork } from '../../engine/environments/fork.ts'
import type { BranchPolicy } from '../../engine/rollout/branch.ts'
import { openBranchPolicy } from '../../engine/rollout/branches/registry.ts'
import { rollSteps } from '../../engine/rollout/step.ts'
import type { Strategy } from '../../engine/rollout/strategy.ts'
import { rollTree } from '../../engine/rollout/tree.ts'
import { checkSetting } from './check-settings.ts'
import { openNamed } from './open-named.ts'
import { defaults, type Settings } from './settings.ts'
import { isUserPart, loadUserPart } from './user-part.ts'

/** What a strategy is opened with. */
export interface StrategyParts {
  readonly environment: Environment
  readonly renderer: Renderer
  readonly reward?: Environment['reward'] | undefined
}

/** A strategy, with the environment as it needs it and the candidates per token it looks at. */
export interface OpenedStrategy {
  readonly strategy: Strategy
  readonly environment: Environment
  readonly topLogprobs: number
}

/** How an attempt is rolled; missing fields have the setting's default. */
export interface StrategyOptions {
  readonly strategy?: Settings['strategy'] | Strategy
  readonly branch?: string | BranchPolicy | undefined
  readonly leaves?: number
  readonly stepHistory?: number
  readonly topLogprobs?: number
}

/** The strategy that options name: `chain`, `tree` with its branch policy, or `step`; or the user's own. */
export async function readStrategy(
  options: StrategyOptions,
  { environment, renderer, reward }: StrategyParts,
): Promise<OpenedStrategy> {
  const { strategy = defaults.strategy, topLogprobs = defaults.topLogprobs } = options
  const { leaves = defaults.leaves, stepHistory = defaults.stepHistory } = options
  if (typeof strategy === 'string') checkSetting('strategy', strategy, '--strategy')
  if (typeof strategy === 'function') return { strategy, environment, topLogprobs }
  if (strategy === 'chain') {
    return { strategy: usualStrategy(environment), environment, topLogprobs }
  }
  if (isAgent(environment)) {
    throw new SettingError(
      `--strategy ${strategy} is for environments: agent "${environment.name}" goes its own way, which is --strategy chain`,
    )
  }
  if (strategy === 'step') {
    return { strategy: rollSteps({ history: stepHistory }), environment, topLogprobs }
  }
  const branch = await makeBranch(options.branch ?? 'fixed', renderer)
  checkRoom(branch, leaves)
  return {
    strategy: rollTree({ branch, leaves, ...(reward && { reward }) }),
    environment: withFork(environment),
    topLogprobs: Math.max(topLogprobs, branch.topLogprobs ?? 0),
  }
}

/** Paths that start from the opening count among the endings: with no more endings than those, nothing branches. */
function checkRoom({ name, starts = 1 }: BranchPolicy, leaves: number): void {
  if (starts === 1 || leaves > starts) return
  throw new SettingError(
    `--branch ${name} starts ${starts} paths, so --leaves ${leaves} leaves it no branch: --leaves ${2 * starts} does, ` +
      'or fewer starts',
  )
}

async function makeBranch(name: string | BranchPolicy, renderer: Renderer): Promise<BranchPolicy> {
  if (typeof name !== 'string') return name
  if (!isUserPart(name)) {
    return await openNamed(`--branch ${name}`, () => openBranchPolicy(name, renderer.vocabulary))
  }
  const part = await loadUserPart(name)
  if (typeof part === 'object' && part !== null && 'name' in part) return part as BranchPolicy
  throw new SettingError(
    `--branch ${name}: this is not a branch policy, an object with a name and widthBefore, widthAfter or grow`,
  )
}
