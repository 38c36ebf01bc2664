import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { followTriage, wordsOf } from '../test/end-to-end/page-commands.ts'

/** The first is the page's own seed; the others were not tried while its settings were chosen. */
const seeds = [0, 1, 2]

/** The eight commands of docs/start/your-environment.md: how long each takes, and the results, by seed. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const figures = seeds.map(seed => measure(seed))
  if (!json) for (const figure of figures) print(figure)
  return { seeds: figures }
}

interface Figure {
  readonly seed: number
  readonly seconds: number
  readonly commands: readonly { readonly command: string; readonly seconds: number }[]
  /** Success on the tickets that training held out, sampled once. */
  readonly before: number
  readonly after: number
  /** Success on fresh tickets. */
  readonly fresh: number
}

function measure(seed: number): Figure {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-page-'))
  const commands: { command: string; seconds: number }[] = []
  let [before, after, fresh] = [Number.NaN, Number.NaN, Number.NaN]
  for (const { command, status, stdout, stderr, seconds } of followTriage(folder, seed)) {
    if (status !== 0) throw new Error(`${command}\n${stderr}`)
    const [name] = wordsOf(command)
    commands.push({ command: name!, seconds })
    const trained = /success (\S+) before, (\S+) after/.exec(stdout)
    if (trained) [before, after] = [Number(trained[1]), Number(trained[2])]
    const measured = name === 'eval' ? /^ *success +([\d.]+) %/m.exec(stdout) : null
    if (measured) fresh = Number(measured[1]) / 100
  }
  rmSync(folder, { recursive: true })
  const seconds = commands.reduce((sum, each) => sum + each.seconds, 0)
  return { seed, seconds, commands, before, after, fresh }
}

function print({ seed, seconds, commands, before, after, fresh }: Figure): void {
  const parts = commands.map(each => `${each.command} ${each.seconds.toFixed(1)}`).join('  ')
  console.log(`seed ${seed}  ${seconds.toFixed(0)} s for ${commands.length} commands (${parts})`)
  console.log(
    `        held-out success ${before.toFixed(3)} before, ${after.toFixed(3)} after; ${fresh.toFixed(3)} on fresh tickets`,
  )
}
