"""one.py in many processes: the lines that differ have a comment.

usage: belfry local ranks --rank_count 2 -- python3 many.py DIGITS.csv"""
import csv
import sys

import torch

import belfry.ddl as ddl  # 1

ddl.init()  # 2
with open(sys.argv[1], encoding="utf-8") as file:
    rows = torch.tensor([[float(cell) for cell in row] for row in list(csv.reader(file))[1:]])
data = torch.utils.data.TensorDataset(rows[:, :-1] / 16, rows[:, -1].long())

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
optimizer = ddl.distribute(torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9))  # 3
sampler = ddl.sampler(data)  # each rank has a part of the data
for epoch in range(5):
    total = torch.zeros(1)
    sampler.set_epoch(epoch)
    for x, y in torch.utils.data.DataLoader(data, batch_size=32 // ddl.size(), sampler=sampler):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach() * len(y)
    ddl.all_reduce_n(total, op="sum")  # for the line below
    if ddl.rank() == 0:
        print(f"epoch {epoch}: loss {float(total) / len(data):.4f}")
ddl.finalize()  # 4
