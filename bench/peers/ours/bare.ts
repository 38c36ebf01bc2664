// The requests of the rollouts, sent by an HTTP client that does nothing else.
import { openPolicy } from '../../../dist/index.js'
import { openRenderer } from '../../../dist/tokens.js'
import { openAgent, recordRequests, sendRollouts } from '../../bare-client.ts'
import { type RolloutWork, rollAll } from './look-up.ts'
import { measureRollouts, printFigures, readWork } from './side.ts'

const work = await readWork<RolloutWork>()
const model = await openRenderer(work.model)
// The server gives one answer to everything.
const answer = (await (await fetch(work.url, { method: 'POST', body: '{}' })).json()) as object
const recorded = await recordRequests(answer, async url => {
  await using policy = await openPolicy(work.policy.replace('URL', url))
  await rollAll({ policy, model, work: { ...work, concurrency: 1, rollouts: 1 } })
})
const agent = openAgent(work.concurrency)
const run = { agent, sent: recorded.slice(-work.turns), concurrency: work.concurrency }
printFigures(await measureRollouts(work, rollouts => sendRollouts(work.url, { ...run, rollouts })))
await agent.close()
