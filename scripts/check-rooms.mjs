// Checks that the house is as rooms.json says: a floor imports floors below it only, a room of its own floor only
// those it names, and a package only if it names it; that everything it names is used; and that no folder
// has too many files. With --write, writes what is used into rooms.json and the tables of ARCHITECTURE.md.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const floors = JSON.parse(readFileSync('rooms.json', 'utf8'))
const order = Object.keys(floors)
const problems = []
/** Files of code that one folder may hold, tests not counted. */
const mostFiles = 25
const text = 'packages/text/src'
// The formatter ends every import or re-export with its specifier.
const imports =
  /^(import|export)\b( type)?[^;]*? from '([^'\n]+)'$|^import '([^'\n]+)'$|\bimport\('([^'\n]+)'\)/gm
const isTest = file => /\.(test|test-d|conformance)\.ts$/.test(file)

/** The floor and room of a file; the front door is what lies directly in `src`. */
function placeOf(file) {
  const parts = file.startsWith(text)
    ? ['text', ...file.split('/').slice(3)]
    : file.split('/').slice(1)
  if (parts.length === 1 || (parts[0] === 'text' && parts.length === 2))
    return { floor: parts.length === 1 ? 'the front door' : 'text', room: undefined }
  return { floor: parts[0], room: parts[0] === 'cli' ? 'cli' : parts[1] }
}

/** Where a specifier leads: a place of the house, a package, or nothing to check. */
function targetOf(file, specifier) {
  if (specifier.startsWith('node:')) return undefined
  if (specifier.startsWith('@espalier/text'))
    return { floor: 'text', room: specifier.split('/')[2] }
  if (specifier.startsWith('.')) {
    const path = join(dirname(file), specifier)
    return path.startsWith('src') || path.startsWith(text) ? placeOf(path) : { outside: specifier }
  }
  return {
    package: specifier
      .split('/')
      .slice(0, specifier.startsWith('@') ? 2 : 1)
      .join('/'),
  }
}

/** What every room uses: rooms of its floor and packages. */
const used = {}
for (const floor of order)
  for (const room of Object.keys(floors[floor].rooms))
    used[`${floor}/${room}`] = { imports: new Set(), packages: new Set() }

function checkImport(file, { floor, room }, target) {
  const own = floors[floor].rooms[room]
  if (target.outside) problems.push(`${file}: imports ${target.outside}, outside src`)
  else if (target.package) {
    used[`${floor}/${room}`].packages.add(target.package)
    if (!own.packages.includes(target.package))
      problems.push(`${file}: ${floor}/${room} may not import ${target.package}`)
  } else if (target.floor === floor) {
    if (target.room === room || target.room === undefined) return
    used[`${floor}/${room}`].imports.add(target.room)
    if (!own.imports.includes(target.room))
      problems.push(`${file}: ${floor}/${room} may not import its neighbour ${target.room}`)
  } else if (target.floor === 'the front door') {
    if (floor !== 'cli') problems.push(`${file}: ${floor}/${room} may not import the front door`)
  } else if (order.indexOf(target.floor) > order.indexOf(floor))
    problems.push(`${file}: ${floor} may not import ${target.floor}, which is above it`)
}

const filesIn = {}
for (const folder of [text, 'src'])
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name)
    if (!entry.isFile() || !file.endsWith('.ts') || file.includes('/kernels/') || isTest(file))
      continue
    filesIn[entry.parentPath] = (filesIn[entry.parentPath] ?? 0) + 1
    const place = placeOf(file)
    if (place.room === undefined) continue
    if (!floors[place.floor]?.rooms[place.room]) {
      problems.push(`${file}: no room called ${place.floor}/${place.room} in rooms.json`)
      continue
    }
    for (const [, , isType, from, bare, late] of readFileSync(file, 'utf8').matchAll(imports)) {
      const target = targetOf(file, from ?? bare ?? late)
      if (!target) continue
      if (place.floor === 'base' && target.floor === 'text' && !isType)
        problems.push(`${file}: base imports only types of text`)
      checkImport(file, place, target)
    }
  }
for (const [folder, count] of Object.entries(filesIn))
  if (count > mostFiles) problems.push(`${folder}: ${count} files of code, more than ${mostFiles}`)

function findCycle(rooms, room, trail) {
  if (trail.includes(room)) return [...trail, room]
  for (const next of rooms[room]?.imports ?? []) {
    const cycle = findCycle(rooms, next, [...trail, room])
    if (cycle) return cycle
  }
}

for (const floor of order) {
  const { rooms } = floors[floor]
  for (const [room, own] of Object.entries(rooms)) {
    const cycle = findCycle(rooms, room, [])
    if (cycle) problems.push(`rooms.json has a cycle: ${cycle.join(' > ')}`)
    const { imports, packages } = used[`${floor}/${room}`]
    if (process.argv.includes('--write'))
      Object.assign(own, { imports: [...imports].sort(), packages: [...packages].sort() })
    for (const name of own.imports)
      if (!imports.has(name))
        problems.push(`rooms.json: ${floor}/${room} may import ${name}, and nothing does`)
    for (const name of own.packages)
      if (!packages.has(name))
        problems.push(
          `rooms.json: ${floor}/${room} may import the package ${name}, and nothing does`,
        )
  }
}

const page = readFileSync('ARCHITECTURE.md', 'utf8')
const rows = order.flatMap(floor => [
  `| **${floor}** | ${floors[floor].is} | |`,
  ...Object.entries(floors[floor].rooms).map(
    ([room, { is, imports }]) => `| ${room} | ${is} | ${imports.join(', ')} |`,
  ),
])
const table = `| floor, room | is | imports of its floor |\n|---|---|---|\n${rows.join('\n')}\n`
const written = page.replace(/\| (?:room|floor, room) \| is \| [^\n]*\n(\|.*\n)+/, () => table)
if (process.argv.includes('--write')) {
  writeFileSync('rooms.json', `${JSON.stringify(floors, null, 2)}\n`)
  writeFileSync('ARCHITECTURE.md', written)
} else if (written !== page)
  problems.push('ARCHITECTURE.md: its table of rooms is old; node scripts/check-rooms.mjs --write')

for (const problem of new Set(problems)) console.error(problem)
process.exit(problems.length > 0 ? 1 : 0)
