// A control: a Tinker trainer that gets the advantages of other attempts in its batch.
// `espalier train --trainer ./scripts/gpu/shuffled.mjs#shuffled --policy tinker:URL …`, with URL also
// in SHUFFLED_URL and the learning rate in SHUFFLED_RATE. It needs `npm run build` first.
import { withControl } from '../../dist/learn/control.js'
import { openTinkerTrainer } from '../../dist/learn/tinker/trainer.js'
import { tinkerSessionOf } from '../../dist/policies/tinker/session.js'

export async function shuffled({ policy, seed = 0 }) {
  const session = tinkerSessionOf(policy, process.env.SHUFFLED_URL)
  const learningRate = Number(process.env.SHUFFLED_RATE)
  return withControl(await openTinkerTrainer(session, { learningRate, seed }), 'shuffled', seed)
}
