// What the process grows by while rollouts are open, measured as for the peers: after as short a warm-up, by the most that was resident.
import { openPolicy } from '../../../dist/index.js'
import { openRenderer } from '../../../dist/tokens.js'
import { type RolloutWork, rollAll } from './look-up.ts'
import { printFigures, readWork } from './side.ts'

const work = await readWork<RolloutWork>()
const model = await openRenderer(work.model)
await using policy = await openPolicy(work.policy.replace('URL', work.url))
const mostResident = (): number => process.resourceUsage().maxRSS
await rollAll({ policy, model, work: { ...work, rollouts: 16 } })
const before = mostResident()
await rollAll({ policy, model, work })
printFigures({ kilobytesPerRollout: (mostResident() - before) / work.concurrency })
