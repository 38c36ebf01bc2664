import { commandLine } from '../../base/core/names/program-name.ts'
import { findById, type NamedInRun } from '../../run/store/find-id.ts'
import type { RunReader } from '../../run/store/store.ts'
import { MisuseError } from '../command.ts'

/** Finds what a person means by an id; one that names nothing, or may name several, is refused. */
export async function findShown(reader: RunReader, run: string, id: string): Promise<NamedInRun> {
  const found = await findById(reader, id)
  if (found.kind === 'nothing') {
    throw new MisuseError(
      `no group, tree, trajectory or task "${id}" in ${run}; \`${commandLine('show', run)}\` lists groups`,
    )
  }
  if (found.kind === 'several') {
    const { groups } = found
    const some = `${groups.slice(0, 5).join(', ')}${groups.length > 5 ? ', …' : ''}`
    throw new MisuseError(`"${id}" may be ${groups.length} groups: ${some}`)
  }
  return found
}
