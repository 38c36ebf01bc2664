import { openNamed } from '../../run/settings/open-named.ts'
import { packTau } from '../../worlds/tau/load.ts'
import { type Command, type Invocation, unknownVerb } from '../command.ts'

/** Packs a tau-bench checkout. */
export const tauCommand: Command = {
  name: 'tau',
  usage: 'pack CHECKOUT DIR',
  about:
    'Reads the data, tools, policies and tasks of a tau-bench checkout and writes them as one folder.\n' +
    'Run it with: espalier eval --environment tau:retail,root=DIR --results FILE',
  examples: ['espalier tau pack ~/tau-bench tau-data'],
  settings: [],
  positionalCount: [3, 3],
  run: runTau,
}

async function runTau({ positionals: words, terminal, json }: Invocation): Promise<number> {
  const [verb, checkout, folder] = words
  if (verb !== 'pack') throw unknownVerb('tau', verb, ['pack'])
  const domains = await openNamed(undefined, () => packTau(checkout!, folder!))
  if (json) terminal.print(JSON.stringify({ folder, domains }))
  else terminal.print(`packed ${domains.join(' and ')} into ${folder}`)
  return 0
}
