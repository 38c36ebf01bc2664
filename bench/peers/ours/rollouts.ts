// Rollouts through the public `roll()` with a run folder, as `espalier roll` does them.
import { openPolicy, openRenderer } from '../../../dist/index.js'
import { type RolloutWork, rollAll, warmUp } from './look-up.ts'
import { cpuSeconds, printFigures, readWork } from './side.ts'

const work = await readWork<RolloutWork>()
const model = await openRenderer(work.model)
await using policy = await openPolicy(work.policy.replace('URL', work.url))

// A run of hours works with compiled code; so many rollouts take it there. They are few at a time, so
// that what the process grows by afterwards is what the open rollouts hold.
const concurrency = Math.min(work.concurrency, 64)
await rollAll({ policy, model, work: { ...work, concurrency, rollouts: warmUp } })
globalThis.gc?.()
const before = process.memoryUsage.rss()
const cpu = cpuSeconds()
const start = performance.now()
const most = await rollAll({ policy, model, work })
const seconds = (performance.now() - start) / 1000
const turns = work.rollouts * work.turns
printFigures({
  turnsPerSecond: turns / seconds,
  cpuMicrosecondsPerTurn: ((cpuSeconds() - cpu) / turns) * 1e6,
  kilobytesPerRollout: Math.max(0, most - before) / 1024 / work.concurrency,
})
