import type { WeightsSource } from '../../../engine/policies/open-policy.ts'
import { defaults } from '../settings.ts'
import { findWeights, type Progress, readHubModel } from './snapshot.ts'

/** The folder or GGUF file of `OWNER/NAME`, fetched with a progress bar if it is not on this machine. */
export async function findHubWeights(text: string, source: WeightsSource = {}): Promise<string> {
  const { offline = defaults.offline, hub = defaults.hub, tell = () => {} } = source
  const key = process.env.HF_TOKEN
  const options = { offline, hub, tell, ...(key && { key }) }
  return await findWeights(readHubModel(text), { ...options, onProgress: makeBar(process.stderr) })
}

const barWidth = 24

/** Draws a bar if somebody looks; on one line, which ends when all is there. */
export function makeBar(
  stream: Pick<NodeJS.WriteStream, 'write'> & { readonly isTTY?: boolean },
): (progress: Progress) => void {
  let drawn = -1
  return ({ name, done, total }) => {
    const share = total === 0 ? 1 : done / total
    const permille = Math.floor(share * 1000)
    if (!stream.isTTY || permille === drawn) return
    drawn = permille
    const bar = '█'.repeat(Math.floor(share * barWidth)).padEnd(barWidth, '░')
    stream.write(
      `\r\u001b[2K${bar} ${(share * 100).toFixed(1)} %  ${name}${share === 1 ? '\n' : ''}`,
    )
  }
}
