// Calls to belfry serve by npm's @grpc/grpc-js, with the protocol's own proto; serve_clients.sh calls this.
// usage: node grpc_client.js MODULES PROTO ADDRESS DATA PREDICTED [CA KEY CERTIFICATE]
//   DATA: a CSV file of images; PREDICTED: belfry predict's rows of the first seven, with this batch
"use strict";
const assert = require("assert");
const fs = require("fs");
const path = require("path");

const [modules, proto, address, data, predicted, ...files] = process.argv.slice(2);
const grpc = require(path.join(modules, "@grpc/grpc-js"));
const loader = require(path.join(modules, "@grpc/proto-loader"));

const { inference } = grpc.loadPackageDefinition(loader.loadSync(proto, { keepCase: true, longs: Number, defaults: true }));
const credentials = files.length ? grpc.credentials.createSsl(...files.map((file) => fs.readFileSync(file)))
    : grpc.credentials.createInsecure();
const client = new inference.GRPCInferenceService(address, credentials);

function call(method, request) {
    return new Promise((resolve, reject) => client[method](request, { deadline: Date.now() + 20000 },
        (error, answer) => error ? reject(error) : resolve(answer)));
}

// The cells of seven lines.
function cells(file, line, from, to) {
    return fs.readFileSync(file, "utf8").split("\n").slice(line, line + 7)
        .flatMap((text) => text.split(",").slice(from, to).map(Number));
}

async function main() {
    const images = cells(data, 1, 0, 64), want = new Float32Array(cells(predicted, 0, 1));
    assert.equal((await call("ServerLive", {})).live, true);
    assert.equal((await call("ModelReady", { name: "nothing" })).ready, false);
    const metadata = await call("ModelMetadata", { name: "digits" });
    assert.deepEqual(metadata.inputs, [{ name: "x", datatype: "FP32", shape: [-1, 64] }]);
    const typed = { name: "x", datatype: "FP32", shape: [7, 64], contents: { fp32_contents: images } };
    const answer = await call("ModelInfer", { model_name: "digits", id: "7", inputs: [typed] });
    assert.equal(answer.id, "7");
    assert.deepEqual(new Float32Array(answer.outputs[0].contents.fp32_contents), want);
    const bare = { name: "x", datatype: "FP32", shape: [7, 64] };
    const bytes = Buffer.from(new Float32Array(images).buffer);
    const raw = (await call("ModelInfer", { model_name: "digits", inputs: [bare], raw_input_contents: [bytes] }))
        .raw_output_contents[0];
    assert.deepEqual(raw, Buffer.from(want.buffer));
    // Many calls at once, of which one is wrong.
    const calls = Array.from({ length: 40 }, (_, i) => call("ModelInfer",
        { model_name: "digits", inputs: [{ ...typed, shape: [7, i === 20 ? 63 : 64] }] }).then(() => 0, (e) => e.code));
    const codes = await Promise.all(calls);
    assert.deepEqual(codes.map((code, i) => code !== (i === 20 ? grpc.status.INVALID_ARGUMENT : 0)).indexOf(true), -1);
    client.close();
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
