"""Designs: how the people of a table are asked, and how their reports are read.

base                            Design and RowEstimator: what every design can do
hio, conjunction, marginal      HIO and HI; SC; MG
grouped, decomposition, fanouts   parts of these: groups of levels, how a box is read from levels, fan-outs of trees
grids                           Grids, with grid_cells (how dimensions are cut) and grid_reading (tables and regions)
rivals                          QuadTree and Wavelet
choosing                        `auto`: the design with the smallest predicted errors
"""
