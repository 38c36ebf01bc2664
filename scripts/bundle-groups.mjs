// Which modules are joined into one file. The bundler makes a file for every set of modules that the same
// entries need, which is hundreds of small ones here, and each takes a millisecond to find and open. So entries
// that need some of a group are made to need all of it: then the whole group is one file.
import { resolve } from 'node:path'

const marker = 'espalier-group:'

/**
 * The groups of a graph: what each of `starts` loads statically, minus the groups before it. `doors`, the
 * public entries, are never made to load more than they need.
 * `importsFor` gives the lines that an entry is to end with, and `plugin` knows what they name.
 */
export function findGroups({ inputs }, { starts, doors }) {
  const taken = new Set()
  const groups = starts.map(start => {
    const files = [...closureOf(inputs, start)].filter(file => file !== start && !taken.has(file))
    for (const file of files) taken.add(file)
    return new Set(files)
  })
  const lines = new Map(
    entriesOf(inputs)
      .filter(entry => !doors.includes(entry))
      .map(entry => [resolve(entry), linesFor(inputs, entry, groups)]),
  )
  return { importsFor: path => lines.get(path) ?? '', plugin: pluginOf(groups) }
}

/** Our own files that a file loads statically, including itself. */
function closureOf(inputs, start) {
  const seen = new Set()
  const rest = [start]
  while (rest.length > 0) {
    const file = rest.pop()
    if (seen.has(file) || !file.startsWith('src/')) continue
    seen.add(file)
    for (const { path, kind } of inputs[file].imports) {
      if (kind === 'import-statement') rest.push(path)
    }
  }
  return seen
}

/** Our own files that are loaded by a dynamic import. */
function entriesOf(inputs) {
  const imports = Object.values(inputs).flatMap(input => input.imports)
  const later = imports
    .filter(({ kind, path }) => kind === 'dynamic-import' && path.startsWith('src/'))
    .map(({ path }) => path)
  return [...new Set(later)]
}

/** The imports of all groups up to the last one that is needed, since a group needs those before it. */
function linesFor(inputs, entry, groups) {
  const needed = closureOf(inputs, entry)
  const last = groups.findLastIndex(group =>
    [...group].some(file => needed.has(file) || loadsLater(inputs[file], entry)),
  )
  // A file inside a group is also loaded statically by others, which must not load a later group.
  const own = groups.findIndex(group => group.has(entry))
  const count = own < 0 ? last + 1 : Math.min(own, last + 1)
  return Array.from({ length: count }, (_, index) => `import '${marker}${index}'`).join('\n')
}

function loadsLater({ imports }, entry) {
  return imports.some(({ kind, path }) => kind === 'dynamic-import' && path === entry)
}

function pluginOf(groups) {
  const prefix = new RegExp(`^${marker}`)
  return {
    name: 'groups',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: prefix }, ({ path }) => ({ path, namespace: 'group' }))
      onLoad({ filter: prefix, namespace: 'group' }, ({ path }) => ({
        contents: [...groups[Number(path.slice(marker.length))]]
          .map(file => `import ${JSON.stringify(resolve(file))}`)
          .join('\n'),
        resolveDir: resolve('src'),
      }))
    },
  }
}
