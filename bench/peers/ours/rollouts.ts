// Rollouts through the public `roll()` with a run folder, as `espalier roll` does them.
import { openPolicy } from '../../../dist/index.js'
import { openRenderer } from '../../../dist/tokens.js'
import { type RolloutWork, rollAll } from './look-up.ts'
import { measureRollouts, printFigures, readWork } from './side.ts'

const work = await readWork<RolloutWork>()
const model = await openRenderer(work.model)
await using policy = await openPolicy(work.policy.replace('URL', work.url))
printFigures(
  await measureRollouts(work, rollouts => rollAll({ policy, model, work: { ...work, rollouts } })),
)
