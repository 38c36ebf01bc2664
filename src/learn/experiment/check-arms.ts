import { describeCause } from '../../base/core/failure.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { openRollParts } from '../../run/run/open-parts.ts'
import { needed } from '../../run/settings/open-named.ts'
import { readStored } from '../learn/steps/stored.ts'
import { checkLearning } from '../learn/train.ts'
import { trainOptionsOf } from '../learn/train-options.ts'
import { armSettings, type ExperimentDesign } from './design.ts'
import { cellSettings } from './run-cell.ts'

/** Opens what every arm names, and closes it again: an arm that cannot run is told before anything is rolled. */
export async function checkArms(
  design: ExperimentDesign,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  for (const arm of design.arms) {
    try {
      const values = cellSettings({ settings: { ...armSettings(design, arm) } })
      needed(values, 'policy')
      const environment = needed(values, 'environment')
      const options = { ...trainOptionsOf(values), signal }
      await checkLearning(options)
      await using opened = await openRollParts(environment, values.tasks, options)
      if (values.from !== undefined) await readStored(values.from, opened.parts, () => false)
    } catch (cause) {
      signal.throwIfAborted()
      throw new SettingError(`arm ${arm.name}: ${describeCause(cause)}`, { cause })
    }
  }
}
