// Models written node by node, for cases that PyTorch's exporter does not write: newer opsets,
// recurrent layers with lengths, sizes of open dimensions by other operators. onnxruntime computes
// the expected outputs.
//
//   npm install --ignore-scripts onnxruntime-node onnxruntime-common    (in any folder)
//   NODE_PATH=that/folder/node_modules node tests/golden/onnx/make_ops.mjs [name ...]
import { createRequire } from 'node:module';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ort = createRequire(join(process.env.NODE_PATH ?? '', 'x.js'))('onnxruntime-node');
const here = dirname(fileURLToPath(import.meta.url));

// --- Messages, field by field --------------------------------------------------------------------
const varint = (value) => {
  const bytes = [];
  let v = BigInt.asUintN(64, BigInt(value));
  do {
    bytes.push(Number(v & 127n) | (v > 127n ? 128 : 0));
    v >>= 7n;
  } while (v > 0n);
  return Buffer.from(bytes);
};
const int = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, data) => {
  const body = Buffer.from(data);
  return Buffer.concat([varint((field << 3) | 2), varint(body.length), body]);
};
const float = (field, value) => {
  const body = Buffer.alloc(4);
  body.writeFloatLE(value);
  return Buffer.concat([varint((field << 3) | 5), body]);
};
const message = (...parts) => Buffer.concat(parts.flat());

const kinds = { float32: 1, int32: 6, int64: 7, bool: 9 };
const arrays = { float32: Float32Array, int32: Int32Array, int64: BigInt64Array };
const elements = (type, data) =>
  arrays[type].from(data, type === 'int64' ? (x) => BigInt(x) : (x) => Number(x));
const tensor = (type, dims, data, name = '') => {
  const raw = elements(type, data);
  return message(dims.map((d) => int(1, d)), int(2, kinds[type]), bytes(8, name),
    bytes(9, Buffer.from(raw.buffer)));
};
const attr = (name, value) => {
  if (typeof value === 'string') return message(bytes(1, name), bytes(4, value), int(20, 3));
  if (typeof value === 'number') {
    return Number.isInteger(value) ? message(bytes(1, name), int(3, value), int(20, 2))
      : message(bytes(1, name), float(2, value), int(20, 1));
  }
  if (Array.isArray(value) && typeof value[0] === 'string') {
    return message(bytes(1, name), value.map((x) => bytes(9, x)), int(20, 8));
  }
  if (Array.isArray(value)) return message(bytes(1, name), value.map((x) => int(8, x)), int(20, 7));
  return message(bytes(1, name), bytes(5, value.tensor), int(20, 4));
};
const node = (op, inputs, outputs, attrs = {}) => message(
  inputs.split(' ').filter((x) => x).map((x) => bytes(1, x === '-' ? '' : x)),
  outputs.split(' ').map((x) => bytes(2, x)), bytes(4, op),
  Object.entries(attrs).map(([name, value]) => bytes(5, attr(name, value))));
const port = (name, type, dims) => message(bytes(1, name), bytes(2, bytes(1, message(
  int(1, kinds[type]),
  dims === null ? [] : bytes(2, message(dims.map((d) =>
    bytes(1, typeof d === 'string' ? bytes(2, d) : int(1, d)))))))));
const model = (opset, m) => message(int(1, 8), bytes(7, message(
  m.nodes.map((n) => bytes(1, n)), bytes(2, 'graph'),
  Object.entries(m.constants ?? {}).map(([name, [type, dims, data]]) =>
    bytes(5, tensor(type, dims, data, name))),
  m.inputs.map(([name, type, dims]) => bytes(11, port(name, type, dims))),
  m.outputs.map(([name, type]) => bytes(12, port(name, type ?? 'float32', null))))),
bytes(8, int(2, opset)));

// --- Numbers that are always the same ------------------------------------------------------------
let state = 1;
const random = () => {
  state = (Math.imul(state, 1103515245) + 12345) >>> 0;
  return (state >>> 8) / (1 << 24) * 2 - 1;
};
const randoms = (count) => Array.from({ length: count }, random);
const weights = (...dims) => ['float32', dims, randoms(dims.reduce((a, b) => a * b, 1))];
const ints = (...data) => ['int64', [data.length], data];

// --- Models --------------------------------------------------------------------------------------
const outputs = (...names) => names.map((name) => [name]);
const models = {
  opset18: () => [18, {
    inputs: [['x', 'float32', ['n', 4, 5]]],
    nodes: [
      node('ReduceMean', 'x one', 'a', { keepdims: 0 }),
      node('ReduceL2', 'x last', 'b'),
      node('ReduceLogSumExp', 'x both', 'c'),
      node('ReduceMax', 'x last', 'd'),
      node('ReduceSumSquare', 'x', 'e', { noop_with_empty_axes: 0 }),
      node('Split', 'x', 'f g', { axis: 2, num_outputs: 2 }),
      node('Pad', 'x pads - last', 'h'),
      node('Mish', 'x', 'i'),
    ],
    constants: { one: ints(1), last: ints(-1), both: ints(1, 2), pads: ints(1, 2) },
    outputs: outputs(...'abcdefghi'),
  }],
  group_norm18: () => [18, {
    inputs: [['x', 'float32', ['n', 6, 3, 2]]],
    nodes: [node('GroupNormalization', 'x scale bias', 'y', { num_groups: 3, epsilon: 0.001 })],
    constants: { scale: weights(3), bias: weights(3) },
    outputs: outputs('y'),
  }],
  opset21: () => [21, {
    inputs: [['x', 'float32', ['n', 6, 5, 4]]],
    nodes: [
      node('GroupNormalization', 'x scale bias', 'a', { num_groups: 2 }),
      node('Gelu', 'x', 'b'),
      node('Gelu', 'x', 'c', { approximate: 'tanh' }),
      node('Clip', 'x low high', 'd'),
      node('AveragePool', 'x', 'e', { kernel_shape: [2, 2], dilations: [2, 1] }),
      node('LayerNormalization', 'x row', 'f', { axis: -1 }),
      node('Cast', 'x', 'whole', { to: 7 }),
      node('Cast', 'whole', 'g', { to: 1 }),
    ],
    constants: { scale: weights(6), bias: weights(6), row: weights(4), low: ['float32', [], [-0.5]],
      high: ['float32', [], [0.25]] },
    outputs: outputs(...'abcdefg'),
  }],
  resize18: () => [18, {
    inputs: [['x', 'float32', ['n', 2, 4, 5]]],
    nodes: [
      node('Resize', 'x - - sizes', 'a', { mode: 'cubic', axes: [2, 3] }),
      node('Resize', 'x - scales', 'b', { mode: 'linear', coordinate_transformation_mode: 'align_corners' }),
      node('Resize', 'x - - sizes', 'c', { mode: 'nearest', axes: [-2, -1], nearest_mode: 'floor',
        coordinate_transformation_mode: 'asymmetric' }),
      node('Resize', 'x - scales', 'd', { mode: 'linear', coordinate_transformation_mode: 'pytorch_half_pixel' }),
      node('Resize', 'x - - sizes', 'e', { mode: 'linear', axes: [2, 3],
        keep_aspect_ratio_policy: 'not_larger' }),
    ],
    constants: { sizes: ints(7, 8), scales: ['float32', [4], [1, 1, 2, 3]] },
    outputs: outputs(...'abcde'),
  }],
  gru_lengths: () => [14, {
    inputs: [['x', 'float32', [5, 'n', 3]], ['lengths', 'int32', ['n']], ['h', 'float32', [2, 'n', 4]]],
    nodes: [node('GRU', 'x w r b lengths h', 'y last', { hidden_size: 4, direction: 'bidirectional',
      linear_before_reset: 0, activations: ['Sigmoid', 'Tanh', 'Sigmoid', 'Tanh'] })],
    constants: { w: weights(2, 12, 3), r: weights(2, 12, 4), b: weights(2, 24) },
    outputs: outputs('y', 'last'),
    numbers: { lengths: (n) => Array.from({ length: n }, (_, i) => 5 - i) },
  }],
  lstm_cell: () => [14, {
    inputs: [['x', 'float32', [5, 'n', 3]], ['c', 'float32', [1, 'n', 4]]],
    nodes: [
      node('Shape', 'c', 'shape'),
      node('ConstantOfShape', 'shape', 'zeros'),
      node('LSTM', 'x w r - - zeros c', 'y h d', { hidden_size: 4, direction: 'reverse' }),
      node('LSTM', 'x w r - - - -', 'plain', { hidden_size: 4 }),
    ],
    constants: { w: weights(1, 16, 3), r: weights(1, 16, 4) },
    outputs: outputs('y', 'h', 'd', 'plain'),
  }],
  // Operators through which sizes pass: int32, arithmetic, Where, Slice, a multiple, back again.
  sizes: () => [13, {
    inputs: [['x', 'float32', ['n', 6, 4]]],
    nodes: [
      node('Shape', 'x', 's'),
      node('Cast', 's', 's32', { to: 6 }),
      node('Slice', 's32 zero one zero', 'n32'),
      node('Squeeze', 'n32 zero', 'n0'),
      node('Mul', 'n0 two', 'n2'),
      node('Unsqueeze', 'n2 zero', 'n2v'),
      node('Concat', 'n2v three', 'target32', { axis: 0 }),
      node('Cast', 'target32', 'target', { to: 7 }),
      node('Reshape', 'x target', 'a'), // [2 n, 3, 4]
      node('Shape', 'a', 'as'),
      node('Gather', 'as index', 'an'),
      node('Div', 'an long', 'back'),
      node('Add', 'back nothing', 'same'),
      node('Unsqueeze', 'same zero', 'samev'),
      node('Concat', 'samev minus', 'flat', { axis: 0 }),
      node('Reshape', 'a flat', 'b'), // [n, 24]
      node('Concat', 'samev minus minus', 'marked', { axis: 0 }),
      node('Equal', 'marked minus', 'isminus'),
      node('Where', 'isminus ones marked', 'wanted'),
      node('Expand', 'row wanted', 'c'), // [n, 1, 4]
      node('ConstantOfShape', 'wanted', 'd', { value: { tensor: tensor('float32', [1], [7]) } }),
      node('Size', 'a', 'count'),
      node('Div', 'count twelve', 'tiles'),
      node('Unsqueeze', 'tiles zero', 'tilesv'),
      node('Concat', 'tilesv minus', 'rows', { axis: 0 }),
      node('Reshape', 'b rows', 'e'), // [2 n, 12]
      node('Flatten', 'a', 'f', { axis: 2 }), // [6 n, 4]
      node('Slice', 'f zero whole zero', 'g0'),
      node('Shape', 'f', 'fs'),
      node('Split', 'fs', 'fn fw', { axis: 0 }),
      node('Slice', 'f zero fn zero', 'g'),
    ],
    constants: { zero: ints(0), one: ints(1), whole: ints(9223372036854775807n), minus: ints(-1),
      ones: ints(1, 1, 1), two: ['int32', [], [2]], three: ['int32', [2], [3, 4]],
      index: ['int64', [], [0]], long: ['int64', [], [2]], nothing: ['int64', [], [0]],
      twelve: ['int64', [], [12]], row: weights(1, 4) },
    outputs: outputs(...'abcdefg'),
  }],
  einsum: () => [13, {
    inputs: [['x', 'float32', ['n', 3, 4]], ['y', 'float32', ['n', 4, 2]]],
    nodes: [
      node('Einsum', 'x y', 'a', { equation: 'bij,bjk->bki' }),
      node('Einsum', 'x w', 'b', { equation: '...j,jk->...k' }),
      node('Einsum', 'x x v', 'c', { equation: 'bij, bij, j -> bi' }),
      node('Einsum', 'x w', 'd', { equation: 'bij,jk' }),
      node('Einsum', 'w w', 'e', { equation: 'ij,kl->ijkl' }),
      node('Einsum', 'square', 'f', { equation: 'ii->i' }),
      node('Einsum', 'x', 'g', { equation: 'bij->b' }),
    ],
    constants: { w: weights(4, 5), v: weights(4), square: weights(3, 3) },
    outputs: outputs(...'abcdefg'),
  }],
};

const write = (file, data) => {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, data);
};

for (const name of process.argv.length > 2 ? process.argv.slice(2) : Object.keys(models)) {
  state = [...name].reduce((sum, c) => sum + c.charCodeAt(0), 1);
  const [opset, m] = models[name]();
  const folder = join(here, name), data = model(opset, m);
  write(join(folder, 'model.onnx'), data);
  const session = await ort.InferenceSession.create(data, { logSeverityLevel: 3 });
  for (const [set, n] of [1, 3].entries()) {
    const feeds = {};
    m.inputs.forEach(([input, type, dims], i) => {
      const shape = dims.map((d) => (d === 'n' ? n : d));
      const count = shape.reduce((a, b) => a * b, 1);
      const numbers = m.numbers?.[input]?.(n) ?? randoms(count);
      feeds[input] = new ort.Tensor(type, elements(type, numbers), shape);
      write(join(folder, `test_data_set_${set}`, `input_${i}.pb`), tensor(type, shape, numbers));
    });
    const results = await session.run(feeds);
    m.outputs.forEach(([output], i) => {
      const { type, dims, data: got } = results[output];
      write(join(folder, `test_data_set_${set}`, `output_${i}.pb`), tensor(type, dims, got));
    });
  }
  console.log(name);
}
