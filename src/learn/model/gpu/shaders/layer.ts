// Kernels in WGSL. Every array is row-major and whole; where a kernel begins in one is among its numbers.

import { byRow, everyOne, type Kernel } from './kernel.ts'

/** A half in bfloat16 beside another in one word. */
const readWeight = `
fn weight(at: u32) -> f32 {
  if (p.halves == 0u) { return bitcast<f32>(b[at]); }
  let word = b[at / 2u];
  return bitcast<f32>(select(word << 16u, word & 0xffff0000u, at % 2u == 1u));
}`

/** C = alpha · A B + beta · C, by strides: rows and columns of A and B may lie either way. */
export const product: Kernel = {
  numbers: [
    ...(['u rows', 'u columns', 'u inner', 'u halves', 'u a', 'u aRow', 'u aInner'] as const),
    ...(['u b', 'u bColumn', 'u bInner', 'u c', 'u cRow', 'f alpha', 'f beta'] as const),
  ],
  arrays: ['a', 'b:u32', 'c='],
  code: `${readWeight}
var<workgroup> left: array<f32, 512>;
var<workgroup> right: array<f32, 512>;
@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) local: vec3u) {
  let thread = local.y * 16u + local.x;
  let row = group.y * 32u;
  let column = group.x * 32u;
  var sums = vec4f();
  for (var first = 0u; first < p.inner; first += 16u) {
    for (var part = 0u; part < 2u; part++) {
      let at = thread + part * 256u;
      let line = at / 16u;
      let k = first + at % 16u;
      var value = 0.0;
      if (row + line < p.rows && k < p.inner) {
        value = a[p.a + (row + line) * p.aRow + k * p.aInner];
      }
      left[at] = value;
      value = 0.0;
      if (column + line < p.columns && k < p.inner) {
        value = weight(p.b + (column + line) * p.bColumn + k * p.bInner);
      }
      right[at] = value;
    }
    workgroupBarrier();
    for (var k = 0u; k < 16u; k++) {
      let x = vec2f(left[local.y * 16u + k], left[(local.y + 16u) * 16u + k]);
      let y = vec2f(right[local.x * 16u + k], right[(local.x + 16u) * 16u + k]);
      sums += vec4f(x.x * y, x.y * y);
    }
    workgroupBarrier();
  }
  for (var part = 0u; part < 4u; part++) {
    let line = row + local.y + (part / 2u) * 16u;
    let place = column + local.x + (part % 2u) * 16u;
    if (line >= p.rows || place >= p.columns) { continue; }
    let at = p.c + line * p.cRow + place;
    var value = p.alpha * sums[part];
    if (p.beta != 0.0) { value += p.beta * c[at]; }
    c[at] = value;
  }
}`,
}

/** Rows of the embedding, of which a part may lie here: of the ids from `first` on. */
export const embed: Kernel = {
  numbers: ['u count', 'u width', 'u halves', 'u first', 'u rows', 'f scale'],
  arrays: ['ids:u32', 'b:u32', 'out='],
  code: `${readWeight}
${everyOne(`
    let row = ids[at / p.width] - p.first;
    if (row < p.rows) { out[at] = p.scale * weight(row * p.width + at % p.width); }`)}`,
}

/** Rows divided by their root mean square. */
export const norm: Kernel = {
  numbers: ['u width', 'u weight', 'f epsilon'],
  arrays: ['x', 'w', 'out='],
  code: byRow(`
  let row = index * p.width;
  var squares = 0.0;
  for (var at = lane; at < p.width; at += 64u) { squares += x[row + at] * x[row + at]; }
  let scale = inverseSqrt(sum(squares, lane) / f32(p.width) + p.epsilon);
  for (var at = lane; at < p.width; at += 64u) {
    out[row + at] = x[row + at] * scale * w[p.weight + at];
  }`),
}

/** The gradient of `norm`, added to `beta` times what is there. */
export const normBack: Kernel = {
  numbers: ['u width', 'u weight', 'f epsilon', 'f beta'],
  arrays: ['x', 'w', 'dy', 'dx='],
  code: byRow(`
  let row = index * p.width;
  var squares = 0.0;
  var along = 0.0;
  for (var at = lane; at < p.width; at += 64u) {
    squares += x[row + at] * x[row + at];
    along += x[row + at] * dy[row + at] * w[p.weight + at];
  }
  let scale = inverseSqrt(sum(squares, lane) / f32(p.width) + p.epsilon);
  let back = sum(along, lane) * scale * scale * scale / f32(p.width);
  for (var at = lane; at < p.width; at += 64u) {
    var value = dy[row + at] * w[p.weight + at] * scale - x[row + at] * back;
    if (p.beta != 0.0) { value += p.beta * dx[row + at]; }
    dx[row + at] = value;
  }`),
}

/** Heads turned by their positions, forward or back (or only copied, by 0), to the cells that tokens have. */
export const turn: Kernel = {
  numbers: ['u count', 'u width', 'u size', 'u scatters', 'f direction'],
  arrays: ['tokens:Token', 'angles', 'x', 'out='],
  code: everyOne(`
    let half = p.size / 2u;
    let token = at / (p.width / 2u);
    let pair = at % (p.width / 2u);
    let low = (pair / half) * p.size + pair % half;
    let start = token * p.width + low;
    let to = select(token, tokens[token].cell, p.scatters == 1u) * p.width + low;
    let angle = 2u * (tokens[token].position * half + pair % half);
    var cosine = angles[angle];
    var sine = angles[angle + 1u] * p.direction;
    if (p.direction == 0.0) { cosine = 1.0; }
    let first = x[start];
    let second = x[start + half];
    out[to] = first * cosine - second * sine;
    out[to + half] = second * cosine + first * sine;`),
}

/** The unit's activation and its slope, by a gate. */
const activation = `
fn bent(x: f32) -> vec2f {
  if (p.tanh == 0u) {
    let sigmoid = 1.0 / (1.0 + exp(-x));
    return vec2f(x * sigmoid, sigmoid * (1.0 + x * (1.0 - sigmoid)));
  }
  let inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);
  let bend = 1.0 - 2.0 / (exp(2.0 * clamp(inner, -20.0, 20.0)) + 1.0);
  let steep = 0.7978845608028654 * (1.0 + 0.134145 * x * x);
  return vec2f(0.5 * x * (1.0 + bend), 0.5 * (1.0 + bend) + 0.5 * x * (1.0 - bend * bend) * steep);
}`

export const gate: Kernel = {
  numbers: ['u count', 'u tanh'],
  arrays: ['g', 'u', 'out='],
  code: `${activation}${everyOne('out[at] = bent(g[at]).x * u[at];')}`,
}

export const gateBack: Kernel = {
  numbers: ['u count', 'u tanh'],
  arrays: ['dy', 'g=', 'u='],
  code: `${activation}${everyOne(`
    let both = bent(g[at]);
    let up = u[at];
    u[at] = dy[at] * both.x;
    g[at] = dy[at] * up * both.y;`)}`,
}

/** Equal numbers on every row, as biases are: `by` times them, added to `beta` times what is there. */
export const fill: Kernel = {
  numbers: ['u count', 'u width', 'u start', 'f by', 'f beta'],
  arrays: ['x', 'out='],
  code: everyOne(`
    var value = p.by * x[p.start + at % p.width];
    if (p.beta != 0.0) { value += p.beta * out[at]; }
    out[at] = value;`),
}

/** Some rows of many. */
export const gather: Kernel = {
  numbers: ['u count', 'u width', 'u first'],
  arrays: ['places:u32', 'x', 'out='],
  code: everyOne('out[at] = x[places[p.first + at / p.width] * p.width + at % p.width];'),
}

/** Adds rows to those that they were gathered from; rows of one token follow each other. */
export const spread: Kernel = {
  numbers: ['u count', 'u width', 'u first', 'u rows'],
  arrays: ['places:u32', 'x', 'out='],
  code: everyOne(`
    let token = places[p.first + at / p.width];
    let row = at / p.width;
    if (row == 0u || places[p.first + row - 1u] != token) {
      var total = 0.0;
      for (var each = row; each < p.rows && places[p.first + each] == token; each++) {
        total += x[each * p.width + at % p.width];
      }
      out[token * p.width + at % p.width] += total;
    }`),
}
