// Which modules are joined into one file. The bundler makes a file for every set of modules that the same
// entries need, which is hundreds of small ones here, and each takes a millisecond to find and open. So entries
// that need some of a group are made to need all of it: then the whole group is one file.
import { relative, resolve } from 'node:path'

const source = resolve('src')
const marker = 'espalier-group:'

/**
 * The groups of a graph: files that the same `starts` load statically. `doors`, what people load and start, are
 * never made to load more than they need.
 * `importsFor` gives the lines that an entry is to end with, and `plugin` knows what they name; it also gives
 * every file that is loaded by a dynamic import an entry of its own, which such lines can stand in: in the file
 * itself they would load a group that it is in, in a circle.
 */
export function findGroups({ inputs }, { starts, doors }) {
  const groups = groupsOf(inputs, starts)
  const importsFor = path => {
    const entry = nameOf(path)
    return doors.includes(entry) ? '' : linesFor(inputs, entry, groups)
  }
  // What people load is an entry already.
  const isOwn = path => path.startsWith(source) && !doors.includes(nameOf(path))
  return { importsFor, plugin: pluginOf(groups, importsFor, isOwn) }
}

/** A file as the graph names it. */
const nameOf = path => relative(resolve('.'), path).replaceAll('\\', '/')

function groupsOf(inputs, starts) {
  const loaded = starts.map(start => closureOf(inputs, start))
  const groups = new Map()
  for (const file of new Set(loaded.flatMap(files => [...files]))) {
    if (starts.includes(file)) continue
    const loaders = loaded.map(files => files.has(file)).join()
    groups.set(loaders, (groups.get(loaders) ?? new Set()).add(file))
  }
  return [...groups.values()]
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

/** The imports of every group that an entry needs a file of, or that the files of such a group need. */
function linesFor(inputs, entry, groups) {
  const needed = closureOf(inputs, entry)
  const isNeeded = group =>
    [...group].some(file => needed.has(file) || loadsLater(inputs[file], entry))
  for (const file of groups.filter(isNeeded).flatMap(group => [...group])) {
    for (const each of closureOf(inputs, file)) needed.add(each)
  }
  const numbers = groups.flatMap((group, index) => (isNeeded(group) ? index : []))
  return numbers.map(index => `import '${marker}${index}'`).join('\n')
}

function loadsLater({ imports }, entry) {
  return imports.some(({ kind, path }) => kind === 'dynamic-import' && path === entry)
}

function pluginOf(groups, importsFor, isOwn) {
  const prefix = new RegExp(`^${marker}`)
  return {
    name: 'groups',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^\./ }, ({ path, kind, resolveDir }) =>
        kind === 'dynamic-import' && isOwn(resolve(resolveDir, path))
          ? { path: resolve(resolveDir, path), namespace: 'entry' }
          : undefined,
      )
      onLoad({ filter: /.*/, namespace: 'entry' }, ({ path }) => ({
        contents: `export * from ${JSON.stringify(path)}\n${importsFor(path)}`,
        resolveDir: source,
      }))
      onResolve({ filter: prefix }, ({ path }) => ({ path, namespace: 'group' }))
      onLoad({ filter: prefix, namespace: 'group' }, ({ path }) => ({
        contents: [...groups[Number(path.slice(marker.length))]]
          .map(file => `import ${JSON.stringify(resolve(file))}`)
          .join('\n'),
        resolveDir: source,
      }))
    },
  }
}
