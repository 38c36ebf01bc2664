import { count } from '../../../base/core/names/units.ts'
import { packRun } from '../../../run/exchange/pack.ts'
import { claimRunFolder } from '../../../run/store/run-folder.ts'
import type { Command, Invocation } from '../../command.ts'

/** Joins a run's segments into one journal. */
export const packCommand: Command = {
  name: 'pack',
  usage: 'RUN [--out RUN]',
  about:
    'Copies a run into a folder that holds all of it: the trees that workers of a cluster wrote into\n' +
    'segments (--segments) are read from there and put into one journal. What read the run before\n' +
    'reads the copy, wherever it is carried.',
  examples: ['espalier pack runs/0007 --out runs/whole'],
  settings: ['out'],
  positionalCount: [1, 1],
  run: runPack,
}

async function runPack({ positionals, flags, terminal, json }: Invocation): Promise<number> {
  await using claimed = await claimRunFolder(flags.out)
  const { out } = claimed
  const packed = await packRun(positionals[0]!, out)
  if (json) terminal.print(JSON.stringify({ run: out, ...packed }))
  else {
    const { trees, bytes } = packed
    terminal.print(
      `${out}: one journal of ${(bytes / 1e6).toFixed(1)} MB, ${count(trees)} trees of it from segments`,
    )
  }
  return 0
}
