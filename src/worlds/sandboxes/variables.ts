import { quote } from './enclosure.ts'

/** What the programs that build the walls get: nothing that could make them run something else. */
export const plainVariables = { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin' }

/**
 * The words that give a command its variables once it is inside. The programs that build the walls run outside:
 * a PATH or an LD_PRELOAD of somebody else would make them run what that names. Values travel in the environment,
 * under other names, since everybody on a machine can read the words of a command.
 */
export function withVariables(
  variables: Readonly<Record<string, string>>,
  command: readonly string[],
): { readonly words: readonly string[]; readonly variables: Readonly<Record<string, string>> } {
  const entries = Object.entries(variables)
  if (entries.length === 0) return { words: command, variables: plainVariables }
  const carried = entries.map(([, value], at) => [`${prefix}${at}`, value] as const)
  const lines = entries.flatMap(([name], at) =>
    isPlain(name) ? [`${name}=$${prefix}${at}; export ${name}`] : [],
  )
  const others = entries.flatMap(([name], at) =>
    isPlain(name) ? [] : [`${quote(`${name}=`)}"$${prefix}${at}"`],
  )
  const unset = carried.map(([name]) => `-u ${name}`)
  const script = [...lines, `exec /usr/bin/env ${[...unset, ...others].join(' ')} "$@"`].join('\n')
  // Otherwise it would be taken for one more variable.
  const isAssignment = command[0]?.includes('=') === true
  const inner = isAssignment ? ['/bin/sh', '-c', 'exec "$@"', 'sh', ...command] : command
  return {
    words: ['/bin/sh', '-c', script, 'sh', ...inner],
    variables: { ...plainVariables, ...Object.fromEntries(carried) },
  }
}

const prefix = 'ESPALIER_INSIDE_'

/** Variables that some shell does not let anybody set. */
const reserved = /^(UID|EUID|PPID|IFS|LINENO|OPTIND|SHELLOPTS|BASHOPTS|BASH_.*|_)$/

/** Whether a shell can set it. Others it knows not, or keeps for itself; those are set by `env`. */
function isPlain(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !reserved.test(name)
}
